"""Calls of other libraries with nvm's arrays: each line is evaluated with arrays of nvm and of NumPy, and what came
back is counted. Run as a program with the libraries installed, it prints the rows of docs/guide/libraries.md; words
behind it choose libraries. SCIPY_ARRAY_API is set here, before SciPy is imported."""

import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ.setdefault("MPLBACKEND", "Agg")

import importlib
import re
import sys
import warnings

import numpy as np

import nvm

_RNG = np.random.default_rng(0)
X = _RNG.standard_normal((40, 8))
ARRAYS = {
    "X": X,
    "x": X[:, 0].copy(),
    "y": X[:, 1].copy(),
    "p": np.abs(X[:, 2]) + 0.1,
    "P": np.abs(X[:, :4]) + 0.1,
    "f": X[:, 0].astype(np.float32),
    "i": _RNG.integers(0, 5, 40),
    "c": (X[:, 0] > 0).astype("int64"),
    "d": (X[:, 0] + X[:, 3] > 0.2).astype("int64"),
    "s": 1 / (1 + np.exp(-X[:, 0] - X[:, 4])),
    "z": X[:, 0] + 1j * X[:, 1],
    "S": X[:8] @ X[:8].T + 8 * np.eye(8),
    "n": np.where(X > 1.5, np.nan, X),
}

SCIPY = {
    "scipy.fft": """
        sp.{fft|ifft|rfft|hfft|ihfft|dct|idct|dst|idst|fft2|ifft2|fftn|ifftn|rfft2|rfftn|dctn|idctn|dstn|idstn}(X)
        sp.{irfft|irfft2|irfftn}(sp.rfft(X))
        sp.{fftshift|ifftshift}(X)
        sp.fft(z, n=64)
        sp.fft(X, axis=0, norm='ortho')
        sp.dct(x, type={1|2|3|4})
        sp.dst(x, type={1|2|3|4})
        sp.fftfreq(10, xp=xp)
        sp.rfftfreq(10, xp=xp)
        sp.fht(p, 0.1, 0.5)
        sp.ifht(p, 0.1, 0.5)
    """,
    "scipy.stats": """
        sp.{zscore|skew|kurtosis|sem|entropy|gmean|hmean|iqr|variation|gstd|median_abs_deviation|rankdata|moment|\
            kstat}(p)
        sp.{zscore|skew|kurtosis|sem|gmean|hmean|variation|rankdata|moment|describe}(P, axis={0|1})
        sp.{tmean|tvar|tmin|tmax|tstd|tsem|kstatvar|mode|circmean|circvar|circstd|bayes_mvs|lmoment|expectile}(p)
        sp.pmean(p, 2)
        sp.zmap(x, y)
        sp.ttest_1samp(x, 0.0)
        sp.{ttest_ind|ttest_rel|ks_2samp|mannwhitneyu|wilcoxon|ranksums|brunnermunzel|cramervonmises_2samp}(x, y)
        sp.{bartlett|levene|fligner|f_oneway|kruskal|alexandergovern|ansari|mood|epps_singleton_2samp}(x, y)
        sp.{pearsonr|spearmanr|kendalltau|weightedtau|siegelslopes|theilslopes|linregress|chatterjeexi|\
            pointbiserialr}(x, y)
        sp.{normaltest|skewtest|kurtosistest|jarque_bera|shapiro}(x)
        sp.{chisquare|power_divergence}(p)
        sp.{wasserstein_distance|energy_distance}(x, y)
        sp.{combine_pvalues|false_discovery_control}(s)
        sp.directional_stats(P)
        sp.quantile(x, {0.5|y * 0 + 0.25})
        sp.quantile(x, 0.3, method='{linear|hazen|weibull|median_unbiased|harrell-davis|inverted_cdf}')
        sp.quantile(X, 0.5, axis={0|1}, keepdims=True)
        sp.trimboth(x, 0.1)
        sp.trim_mean(X, 0.1, axis=0)
        sp.sigmaclip(x)
        sp.{boxcox_llf|yeojohnson_llf}(0.5, p)
        sp.boxcox(p)
        sp.yeojohnson(x)
        sp.{differential_entropy|cumfreq|relfreq}(x)
        sp.scoreatpercentile(x, 30)
        sp.percentileofscore(x, 0.3)
        sp.binned_statistic(x, y, 'mean', bins=4).statistic
        sp.gaussian_kde(x)(y)
        sp.norm.{pdf|cdf|ppf|logpdf|sf}(s)
        sp.norm.fit(x)
        sp.Normal(mu=0.5).{pdf|cdf|logpdf|ccdf|icdf}(s)
        sp.t.cdf(x, 4)
        sp.gamma.pdf(p, 2.0)
        sp.multivariate_normal(np.zeros(4)).pdf(P)
        sp.bootstrap((x,), np.mean, n_resamples=20, rng=0, method='percentile').standard_error
        sp.permutation_test((x, y), lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis), n_resamples=20,\
            rng=0).statistic
        sp.rankdata(X, axis=1, method='{average|min|max|dense|ordinal}')
        sp.ecdf(x).cdf.quantiles
        sp.somersd(i, c).statistic
        sp.contingency.crosstab(i, c).count
        sp.contingency.expected_freq(P)
        sp.chi2_contingency(P).statistic
        sp.tukey_hsd(x, y).statistic
        sp.friedmanchisquare(x, y, p)
        sp.page_trend_test(P)
        sp.logrank(x, y).statistic
    """,
    "scipy.signal": """
        sp.{detrend|hilbert|hilbert2|periodogram|welch|envelope|spectrogram}(X)
        sp.{convolve|correlate|fftconvolve|oaconvolve}(x, y{|, mode='same'|, mode='valid'})
        sp.{convolve2d|correlate2d}(X, X[:3, :3]{|, mode='same'})
        sp.{lfilter|filtfilt}(p[:3], p[3:6] + 5, x)
        sp.lfilter_zi(p[:3], p[3:6] + 5)
        sp.lfiltic(p[:3], p[3:6] + 5, x[:2])
        sp.sosfilt(sos, x)
        sp.sosfilt(sos, X, axis=0)
        sp.sosfiltfilt(sos, x)
        sp.sosfilt_zi(sos)
        sp.decimate(x, 2)
        sp.resample(x, 20)
        sp.resample_poly(x, 3, 2)
        sp.upfirdn(p[:3], x, 2)
        sp.{medfilt|wiener}(x, 3)
        sp.medfilt2d(X, 3)
        sp.order_filter(X, xp.ones((3, 3)), 1)
        sp.savgol_filter(x, 5, 2)
        sp.{csd|coherence}(x, y, nperseg=16)
        sp.stft(x, nperseg=16)[2]
        sp.istft(sp.stft(x, nperseg=16)[2], nperseg=16)[1]
        sp.lombscargle(p, x, p)
        sp.{argrelmax|argrelmin}(x)
        sp.find_peaks(x)[0]
        sp.peak_prominences(x, xp.asarray(sp.find_peaks(np.asarray(x))[0]))[0]
        sp.freqz(p[:3], p[3:6])[1]
        sp.freqz_sos(sos)[1]
        sp.sosfreqz(sos)[1]
        sp.freqs(p[:3], p[3:6])[1]
        sp.group_delay((p[:3], p[3:6]))[1]
        sp.{tf2zpk|tf2sos|tf2ss|normalize|residue}(p[:3], p[3:6])
        sp.zpk2tf(z[:2], z[2:4], 1.0)
        sp.sos2tf(sos)
        sp.sos2zpk(sos)
        sp.{square|sawtooth}(x)
        sp.gausspulse(x)
        sp.chirp(p, 1.0, 2.0, 3.0)
        sp.unit_impulse(5)
        sp.windows.{hann|hamming|blackman|bartlett|nuttall|cosine|tukey|flattop}(8, xp=xp)
        sp.get_window('hann', 8, xp=xp)
        sp.savgol_coeffs(5, 2, xp=xp)
        sp.{cspline1d|qspline1d}(x)
        sp.sepfir2d(X, p[:3], p[:3])
        sp.symiirorder1(x, 0.5, 0.2)
        sp.deconvolve(x, p[:3])[0]
        sp.choose_conv_method(x, y)
        sp.vectorstrength(p, 0.5)[0]
        sp.lp2lp(p[:2], p[2:5])[0]
        sp.bilinear(p[:2], p[2:5])[0]
        sp.czt(x)
        sp.zoom_fft(x, 0.5)
        sp.ShortTimeFFT(np.hanning(8), 4, fs=1.0).stft(x)
        sp.minimum_phase(p[:7])
        sp.dimpulse((p[:2], p[2:5], 1), n=5)[1][0]
        sp.lsim((p[:2], p[2:5]), x, ar)[1]
        sp.max_len_seq(3)[0]
    """,
    "scipy.special": """
        sp.{erf|erfc|erfinv|erfcinv|ndtr|ndtri|log_ndtr|expit|logit|gamma|gammaln|psi|digamma|i0|i0e|i1|i1e|j0|j1|\
            y0|k0}(s)
        sp.{entr|exp10|exp2|exprel|sinc|cbrt|rgamma|lambertw|ellipk|ellipe|spence|zeta|loggamma|log1p|expm1|k1|y1}(s)
        sp.{logsumexp|softmax|log_softmax}(X{|, axis=1})
        sp.{xlogy|xlog1py|rel_entr|kl_div|beta|betaln|gammainc|gammaincc|poch|binom|chdtr|chdtrc}(p, s)
        sp.{huber|pseudo_huber}(p, s)
        sp.{betainc|betaincc}(p, p, s)
        sp.multigammaln(p + 3, 2)
        sp.polygamma(1, p)
        sp.{jv|iv|kv|yv}(1.5, p)
        sp.comb(i + 5, i)
        sp.factorial(i)
        sp.logsumexp(x, b=p)
        sp.stdtr(4.0, x)
        sp.softplus(x)
        sp.log_expit(x)
        sp.boxcox(p, 0.5)
        sp.{eval_legendre|eval_chebyt|eval_hermite}(3, x)
        sp.roots_legendre(5)
        sp.sph_harm_y(1, 2, x, y)
    """,
    "scipy.integrate": """
        sp.{trapezoid|simpson|cumulative_trapezoid}(X)
        sp.{trapezoid|simpson}(x, np.arange(40.0))
        sp.cumulative_simpson(x, dx=1.0)
        sp.romb(x[:33])
        sp.trapezoid(X, dx=0.5, axis=0)
        sp.tanhsinh(lambda t: t * t, x - 3, x + 3).integral
        sp.cubature(lambda t: xp.sum(t * t, axis=-1), x[:2] * 0, x[:2] * 0 + 1).estimate
        sp.nsum(lambda t: 1 / t**2, p[:3] * 0 + 1, p[:3] * 0 + 100).sum
        sp.solve_ivp(lambda t, u: -u, (0, 1), x[:2]).y
        sp.quad_vec(lambda t: t * x, 0, 1)[0]
    """,
    "scipy.optimize": """
        sp.elementwise.find_root(lambda t: t**3 - 1, (x * 0 - 2, x * 0 + 3)).x
        sp.elementwise.find_minimum(lambda t: (t - 1) ** 2, (x * 0 - 2, x * 0, x * 0 + 3)).x
        sp.elementwise.bracket_root(lambda t: t - 5, x).bracket
        sp.minimize(lambda v: ((v - x[:2]) ** 2).sum(), np.zeros(2)).x
        sp.minimize(lambda v: float(((v - 1) ** 2).sum()), x[:2]).x
        sp.least_squares(lambda v: v - np.asarray(x[:2]), x[:2]).x
        sp.curve_fit(lambda t, a, b: a * t + b, x, y)[0]
        sp.nnls(P, x)[0]
        sp.linear_sum_assignment(S)[1]
        sp.lsq_linear(P, x).x
        sp.root(lambda v: v - 1, x[:2]).x
        sp.isotonic_regression(x).x
        sp.rosen(x)
    """,
    "scipy.differentiate": """
        sp.derivative(lambda t: t**2, x).df
        sp.jacobian(lambda t: t**2, x[:3]).df
        sp.hessian(lambda t: xp.sum(t**2, axis=0), x[:2]).ddf
    """,
    "scipy.spatial": """
        sp.transform.Rotation.from_quat(P).{as_matrix|as_quat|as_rotvec|as_mrp|magnitude}()
        sp.transform.Rotation.from_quat(P).as_euler('xyz')
        sp.transform.Rotation.from_quat(P).apply(x[:3])
        sp.transform.Rotation.from_rotvec(P[:, :3]).{as_quat|as_matrix}()
        sp.transform.Rotation.from_euler('xyz', P[:, :3]).as_quat()
        sp.transform.Rotation.from_matrix(sp.transform.Rotation.from_quat(P).as_matrix()).as_quat()
        sp.transform.Rotation.from_quat(P).mean().as_matrix()
        sp.transform.Rotation.from_quat(P).inv().as_quat()
        (sp.transform.Rotation.from_quat(P) * sp.transform.Rotation.from_quat(P[:1])).as_quat()
        sp.transform.Rotation.from_quat(P).as_davenport(np.eye(3), 'extrinsic')
        sp.transform.Rotation.align_vectors(P[:, :3], P[:, :3])[0].as_quat()
        sp.transform.Slerp(np.arange(40.0), sp.transform.Rotation.from_quat(P))(p).as_quat()
        sp.transform.RigidTransform.from_translation(P[:, :3]).as_matrix()
        sp.transform.RigidTransform.from_translation(P[:, :3]).apply(x[:3])
        sp.distance.pdist(X{|, 'cityblock'})
        sp.distance.cdist(X, X[:3]{|, 'cosine'})
        sp.distance.squareform(sp.distance.pdist(X))
        sp.distance.{euclidean|cosine|cityblock|correlation|chebyshev|braycurtis|canberra|sqeuclidean}(x, y)
        sp.distance_matrix(X, X[:3])
        sp.procrustes(X, X[::-1])[2]
        sp.cKDTree(X).query(X[:3])[0]
        sp.KDTree(X).query(X[:3])[0]
        sp.ConvexHull(X[:, :2]).area
        sp.Delaunay(X[:, :2]).simplices
        sp.Voronoi(X[:, :2]).vertices
        sp.geometric_slerp(x[:3] / np.linalg.norm(x[:3]), y[:3] / np.linalg.norm(y[:3]), [0.5])
    """,
    "scipy.cluster": """
        sp.vq.whiten(X)
        sp.vq.vq(X, X[:3])[0]
        sp.vq.kmeans(X, X[:3])[0]
        sp.vq.kmeans2(X, X[:3], minit='matrix')[0]
        sp.hierarchy.{linkage|single|complete|average|weighted|centroid|median|ward}(X)
        sp.hierarchy.fcluster(sp.hierarchy.linkage(X), 1.0)
        sp.hierarchy.{leaves_list|num_obs_linkage|is_valid_linkage|is_monotonic|maxdists|\
            cophenet}(sp.hierarchy.linkage(X))
        sp.hierarchy.fclusterdata(X, 1.0)
        sp.hierarchy.cut_tree(sp.hierarchy.linkage(X), 3)
        sp.hierarchy.inconsistent(sp.hierarchy.linkage(X))
    """,
    "scipy.interpolate": """
        sp.{CubicSpline|PchipInterpolator|Akima1DInterpolator}(ar, x)(s * 30)
        sp.{make_interp_spline|make_splrep}(ar, x)(s * 30)
        sp.make_smoothing_spline(ar, x)(s * 30)
        sp.make_lsq_spline(ar, x, xp.concat([ar[:1] * 0] * 4 + [ar[-1:]] * 4))(s * 30)
        sp.interp1d(ar, x)(s * 30)
        sp.UnivariateSpline(ar, x)(s * 30)
        sp.{BarycentricInterpolator|KroghInterpolator}(ar[:5], x[:5])(s)
        sp.BSpline(xp.arange(12.0), x[:8], 3)(s + 4)
        sp.PPoly(x.reshape(4, 10), xp.arange(11.0))(s * 10)
        sp.BPoly(x.reshape(4, 10), xp.arange(11.0))(s * 10)
        sp.CubicSpline(ar, x).derivative()(s)
        sp.CubicSpline(ar, x).integrate(0, 3)
        sp.AAA(x, y)(s)
        sp.RegularGridInterpolator((ar, ar[:8]), X)(P[:, :2])
        sp.RectBivariateSpline(ar, ar[:8], X)(ar[:3], ar[:3])
        sp.griddata(X[:, :2], x, X[:3, :2] * 0.1)
        sp.RBFInterpolator(X[:, :2], x)(X[:3, :2])
        sp.LinearNDInterpolator(X[:, :2], x)(X[:3, :2] * 0.1)
        sp.NearestNDInterpolator(X[:, :2], x)(X[:3, :2])
        sp.CubicHermiteSpline(ar, x, y)(s)
        sp.interpn((ar, ar[:8]), X, P[:, :2])
        sp.pade([1.0, 0.5, 0.2], 1)[0](x)
        sp.splev(s, sp.splrep(np.arange(40.0), x))
    """,
    "scipy.ndimage": """
        sp.{gaussian_filter|gaussian_laplace|gaussian_gradient_magnitude}(X, 1.0)
        sp.{sobel|prewitt|laplace|spline_filter|distance_transform_edt|center_of_mass}(X)
        sp.{median_filter|uniform_filter|minimum_filter|maximum_filter|grey_erosion|grey_dilation|grey_opening}(X, 3)
        sp.{rank_filter|percentile_filter}(X, 3, size=3)
        sp.{convolve|correlate}(X, X[:3, :3])
        sp.convolve1d(x, p[:3])
        sp.gaussian_filter1d(x, 1.0)
        sp.generic_filter(X, np.mean, 3)
        sp.{shift|zoom|rotate}(X, 1.5)
        sp.affine_transform(X, S[:2, :2] / 10)
        sp.map_coordinates(X, P[:, :2].T)
        sp.{binary_erosion|binary_dilation|binary_opening|binary_closing|binary_fill_holes}(X > 0)
        sp.label(X > 0)[0]
        sp.{sum_labels|mean|variance|standard_deviation|minimum|maximum|median}(x, i{|, xp.asarray([1, 2])})
        sp.{extrema|minimum_position|maximum_position}(X)
        sp.histogram(x, -1, 1, 4)
        sp.fourier_gaussian(X, 1.0)
        sp.geometric_transform(X, lambda o: o)
        sp.white_tophat(X, 3)
        sp.labeled_comprehension(x, i, [1, 2], np.mean, float, 0.0)
        sp.distance_transform_cdt((X > 0).astype('int32') if hasattr(X, 'astype') else X)
    """,
    "scipy.linalg": """
        sp.{inv|det|expm|logm|sqrtm|eigvalsh|svdvals|pinv|cholesky|null_space|orth|polar|hessenberg|ldl|schur}(S)
        sp.{lu|qr|svd|eigh}(S)
        sp.solve(S, x[:8])
        sp.lstsq(P, x)[0]
        sp.norm(x)
        sp.{toeplitz|hankel|circulant|block_diag}(x[:4])
        sp.solve_triangular(S, x[:8])
        sp.cho_solve(sp.cho_factor(S), x[:8])
        sp.solve_toeplitz(p[:4], x[:4])
        sp.matrix_balance(S)
        sp.solve_sylvester(S, S, S)
        sp.eig(S)[0]
        sp.bandwidth(S)
        sp.issymmetric(S)
    """,
    "scipy.sparse": """
        sp.csr_array(X).toarray()
        sp.csr_array(np.eye(40)) @ x
        sp.csr_array(np.eye(40)) @ X
        sp.coo_array(X).sum()
        sp.diags_array(x).toarray()
        sp.linalg.cg(sp.csr_array(np.eye(40)), x)[0]
        sp.linalg.spsolve(sp.csc_array(np.eye(40)), x)
        sp.linalg.aslinearoperator(S) @ x[:8]
    """,
}

SKLEARN = {
    "sklearn": """
        sk.decomposition.PCA(2, svd_solver='{full|covariance_eigh|randomized}',\
            random_state=0).fit(X).explained_variance_
        sk.decomposition.PCA(2, svd_solver='full').fit_transform(X) ** 2
        sk.decomposition.PCA(2, svd_solver='full', whiten=True).fit(X).{get_covariance|get_precision}()
        sk.decomposition.PCA(2, svd_solver='full').fit(X).score_samples(X)
        sk.decomposition.{TruncatedSVD|FactorAnalysis|IncrementalPCA}(2).fit(X).components_ ** 2
        sk.discriminant_analysis.LinearDiscriminantAnalysis().fit(X, c).{predict|predict_proba|decision_function|\
            transform}(X)
        sk.discriminant_analysis.QuadraticDiscriminantAnalysis().fit(X, c).predict(X)
        sk.linear_model.{Ridge|RidgeCV|RidgeClassifier|RidgeClassifierCV}().fit(X, c).coef_
        sk.linear_model.Ridge(solver='svd').fit(X, x).{coef_|intercept_}
        sk.linear_model.Ridge(solver='svd').fit(X, x).predict(X)
        sk.linear_model.{LinearRegression|BayesianRidge|ElasticNet|Lasso|HuberRegressor}().fit(X, y).coef_
        sk.linear_model.LogisticRegression().fit(X, c).predict_proba(X)
        sk.linear_model.LogisticRegression(solver='lbfgs').fit(X, c).coef_
        sk.linear_model.PoissonRegressor().fit(X, p).coef_
        sk.naive_bayes.GaussianNB().fit(X, c).{predict|predict_proba|predict_log_proba}(X)
        sk.mixture.GaussianMixture(2, init_params='random', random_state=0{|, covariance_type='diag'}).fit(X).score(X)
        sk.mixture.GaussianMixture(2, init_params='random_from_data', random_state=0).fit(X).predict(X)
        sk.kernel_approximation.Nystroem(n_components=5, random_state=0).fit_transform(X)
        sk.kernel_ridge.KernelRidge().fit(X, y).predict(X)
        sk.preprocessing.{MinMaxScaler|StandardScaler|MaxAbsScaler|Normalizer|PolynomialFeatures|\
            RobustScaler}().fit_transform(X)
        sk.preprocessing.{MinMaxScaler|MaxAbsScaler}().fit(X).inverse_transform(X)
        sk.preprocessing.{Binarizer|KernelCenterer|FunctionTransformer}().fit_transform(S)
        sk.preprocessing.{PowerTransformer|KBinsDiscretizer|SplineTransformer}().fit_transform(X)
        sk.preprocessing.QuantileTransformer(n_quantiles=10).fit_transform(X)
        sk.preprocessing.LabelEncoder().fit_transform(i)
        sk.preprocessing.LabelEncoder().fit(i).inverse_transform(i)
        sk.preprocessing.LabelBinarizer().fit_transform(i)
        sk.preprocessing.{scale|minmax_scale|maxabs_scale|normalize|robust_scale|binarize}(X)
        sk.preprocessing.OneHotEncoder(sparse_output=False).fit_transform(i[:, None])
        sk.preprocessing.add_dummy_feature(X)
        sk.preprocessing.label_binarize(i, classes=[0, 1, 2, 3, 4])
        sk.impute.SimpleImputer().fit_transform(n)
        sk.metrics.{accuracy_score|f1_score|precision_score|recall_score|jaccard_score|matthews_corrcoef|\
            zero_one_loss}(c, d)
        sk.metrics.{cohen_kappa_score|hamming_loss|balanced_accuracy_score|confusion_matrix|\
            multilabel_confusion_matrix}(c, d)
        sk.metrics.{precision_recall_fscore_support|class_likelihood_ratios}(c, d)
        sk.metrics.classification_report(c, d)
        sk.metrics.fbeta_score(c, d, beta=0.5)
        sk.metrics.{roc_curve|precision_recall_curve|det_curve|roc_auc_score|average_precision_score|\
            brier_score_loss|log_loss}(c, s)
        sk.metrics.{d2_brier_score|d2_log_loss_score}(c, s)
        sk.metrics.confusion_matrix_at_thresholds(c, s)
        sk.metrics.auc(xp.sort(x), y)
        sk.metrics.{r2_score|mean_squared_error|mean_absolute_error|max_error|explained_variance_score|\
            median_absolute_error}(x, y)
        sk.metrics.{mean_absolute_percentage_error|root_mean_squared_error|mean_pinball_loss|\
            d2_absolute_error_score}(x, y)
        sk.metrics.{mean_squared_log_error|mean_poisson_deviance|mean_gamma_deviance|d2_tweedie_score|\
            mean_tweedie_deviance}(p, p + s)
        sk.metrics.{mean_squared_error|r2_score}(X, X * 2, multioutput='raw_values')
        sk.metrics.pairwise.{rbf_kernel|linear_kernel|polynomial_kernel|sigmoid_kernel|cosine_similarity|\
            laplacian_kernel}(X)
        sk.metrics.pairwise.{euclidean_distances|cosine_distances|manhattan_distances|pairwise_distances}(X)
        sk.metrics.pairwise.{paired_euclidean_distances|paired_cosine_distances|paired_manhattan_distances}(X, X * 2)
        sk.metrics.pairwise.{chi2_kernel|additive_chi2_kernel}(P)
        sk.metrics.pairwise.pairwise_distances(X, metric='cosine')
        sk.metrics.pairwise.pairwise_distances_argmin(X, X[:3])
        sk.metrics.{adjusted_rand_score|adjusted_mutual_info_score|normalized_mutual_info_score|homogeneity_score|\
            v_measure_score}(c, d)
        sk.metrics.{silhouette_score|calinski_harabasz_score|davies_bouldin_score}(X, c)
        sk.metrics.ndcg_score(P, P[:, ::-1])
        sk.metrics.top_k_accuracy_score(c, s, k=1)
        sk.calibration.calibration_curve(c, s)[0]
        sk.calibration.CalibratedClassifierCV(sk.linear_model.RidgeClassifier(solver='svd'),\
            method='temperature').fit(X, c).predict(X)
        sk.model_selection.GridSearchCV(sk.linear_model.Ridge(solver='svd'), {'alpha': [0.1, 1.0]}, cv=3).fit(X,\
            x).best_score_
        sk.model_selection.cross_val_score(sk.linear_model.Ridge(solver='svd'), X, x, cv=3)
        sk.model_selection.cross_val_predict(sk.linear_model.Ridge(solver='svd'), X, x, cv=3)
        sk.model_selection.train_test_split(X, x, random_state=0)[0]
        sk.pipeline.make_pipeline(sk.preprocessing.StandardScaler(), sk.decomposition.PCA(2,\
            svd_solver='full')).fit(X).transform(X) ** 2
        sk.pipeline.make_pipeline(sk.preprocessing.MinMaxScaler(), sk.linear_model.Ridge(solver='svd')).fit(X,\
            x).predict(X)
        sk.cluster.KMeans(2, n_init=1, random_state=0).fit(X).inertia_
        sk.cluster.{DBSCAN|AgglomerativeClustering|MeanShift}().fit(X).labels_
        sk.neighbors.KNeighborsClassifier().fit(X, c).predict(X)
        sk.neighbors.NearestNeighbors().fit(X).kneighbors(X[:3])[0]
        sk.svm.{SVC|LinearSVC}().fit(X, c).predict(X)
        sk.tree.DecisionTreeClassifier(random_state=0).fit(X, c).predict(X)
        sk.ensemble.{RandomForestClassifier|GradientBoostingClassifier|\
            HistGradientBoostingClassifier}(random_state=0).fit(X, c).predict(X)
        sk.gaussian_process.GaussianProcessRegressor().fit(X, y).predict(X[:3])
        sk.neural_network.MLPClassifier(max_iter=5, random_state=0).fit(X, c).predict(X)
        sk.covariance.{EmpiricalCovariance|LedoitWolf|OAS|ShrunkCovariance}().fit(X).covariance_
        sk.feature_selection.VarianceThreshold().fit_transform(X)
        sk.feature_selection.SelectKBest(k=2).fit_transform(X, c)
        sk.feature_selection.{f_classif|f_regression}(X, c)
        sk.manifold.MDS(2, n_init=1, random_state=0, max_iter=3, init='random').fit(X).stress_
        sk.cross_decomposition.PLSRegression(2).fit(X, y).predict(X)
        sk.utils.extmath.randomized_svd(X, 2, random_state=0)[1]
        sk.utils.validation.check_array(X)
        sk.utils.multiclass.{type_of_target|unique_labels}(c)
        sk.utils.class_weight.compute_class_weight('balanced', classes=xp.asarray([0, 1]), y=c)
    """,
}

OTHERS = {
    "array_api_compat": """
        m.is_array_api_obj(X)
        m.{size|device}(X)
        m.to_device(X, 'cpu')
        m.is_writeable_array(X)
        m.is_lazy_array(X)
    """,
    "array_api_extra": """
        m.atleast_nd(X, ndim=3)
        m.{argpartition|partition}(x, 3)[3]
        m.cov(X)
        m.create_diagonal(x)
        m.expand_dims(X, axis=(0, 1))
        m.{isclose|isin|setdiff1d|union1d|searchsorted}(xp.sort(x), xp.sort(y))
        m.kron(X, P)
        m.nunique(i)
        m.one_hot(i, 5)
        m.pad(X, 2)
        m.sinc(x)
        m.nan_to_num(n)
        m.at(X, slice(0, 3)).{set|add|multiply|subtract|min|max|divide|power}(2.0)
        m.at(X)[X > 0].set(0.0)
        m.apply_where(x > 0, x, xp.sqrt, fill_value=0.0)
        m.broadcast_shapes((2, 1), (3,))
        m.default_dtype(xp)
        m.lazy_apply(lambda a: a + 1, X)
        m.cov(X[:, 0])
        m.angle(z)
    """,
    "einops": """
        m.rearrange(X, 'a b -> b a')
        m.rearrange(X, '(a b) c -> b (a c)', a=4)
        m.rearrange([X, X], 'l a b -> a (l b)')
        m.reduce(X, '(a 2) b -> a 1 b', '{mean|max|min|sum|prod}')
        m.reduce(X > 0, 'a b -> b', '{any|all}')
        m.repeat(X, 'a b -> a b 3')
        m.einsum(X, X, 'a b, a c -> b c')
        m.pack([X, X], 'a *')[0]
        m.unpack(X, [[3], [5]], 'a *')[1]
        m.asnumpy(X)
        m.parse_shape(X, 'a b')
    """,
    "opt_einsum": """
        m.contract('ab,ac,bd->cd', X, X, S)
        m.contract('{ab->ba|ab->b|ab->}', X)
        m.contract('ab,ab->a', X, X)
        m.contract_path('ab,ac,bd->cd', X, X, S)[0]
        m.contract_expression('ab,bc->ac', (40, 8), (8, 8))(X, S)
    """,
    "dask.array": """
        D(X).{sum|mean|max|min|std|var|prod|any|all|argmax|argmin}(axis={0|1}).compute()
        D(X).{sum|mean|max|min|std|var|prod}().compute()
        D(X).{cumsum|cumprod}(axis={0|1}).compute()
        D(X).map_blocks(lambda b: b * 2{|, dtype='f8'}).compute()
        D(X).map_blocks(xp.exp, dtype='f8').compute()
        D(X).map_overlap(lambda b: b, depth=1, boundary='{reflect|periodic|nearest}').compute()
        (D(X) {+|-|*|/|**|>|==|%} 2).compute()
        (D(X) + D(X)).compute()
        (D(X).T @ D(X)).compute()
        (D(X) + X).compute()
        (1 / D(P)).compute()
        m.{sqrt|exp|log|abs|floor|sign|isnan|log1p}(D(P)).compute()
        np.{sqrt|exp|sin}(D(P)).compute()
        np.{add|maximum}(D(P), D(P)).compute()
        m.tensordot(D(X).T, D(X), 1).compute()
        m.einsum('ij,ik->jk', D(X), D(X)).compute()
        m.{concatenate|stack}([D(X), D(X)]).compute()
        m.where(D(X) > 0, D(X), 0.0).compute()
        m.{transpose|ravel|flipud|fliplr|squeeze}(D(X)).compute()
        D(X)[3:9, ::2].compute()
        D(X)[[0, 5, 30]].compute()
        D(X)[D(X)[:, 0] > 0].compute()
        D(X).rechunk(7).compute()
        D(X).astype('float32').compute()
        D(X).clip(-1, 1).compute()
        D(X).round(1).compute()
        m.percentile(D(x), [30, 60]).compute()
        m.{nansum|nanmean|nanmax|nanstd}(D(n), axis=0).compute()
        m.median(D(X), axis=1).compute()
        m.bincount(D(i)).compute()
        m.histogram(D(x), bins=4, range=(-2, 2))[0].compute()
        m.unique(D(i)).compute()
        m.diff(D(x)).compute()
        m.topk(D(x), 3).compute()
        m.pad(D(X), 1).compute()
        m.roll(D(X), 1, axis=0).compute()
        m.take(D(X), [0, 2], axis=0).compute()
        m.linalg.{svd|qr}(D(X))[1].compute()
        m.linalg.norm(D(X)).compute()
        m.linalg.{inv|cholesky}(D(S).rechunk(8)).compute()
        m.linalg.solve(D(S).rechunk(8), D(x[:8]).rechunk(8)).compute()
        m.fft.fft(D(X).rechunk((40, 4)), axis=0).compute()
        m.apply_along_axis(lambda r: r.sum(), 1, D(X)).compute()
        m.apply_gufunc(lambda a: a.mean(axis=-1), '(i)->()', D(X).rechunk((10, -1))).compute()
        m.blockwise(lambda a: a + 1, 'ij', D(X), 'ij', dtype='f8').compute()
        m.reduction(D(X), lambda a, axis, keepdims: a.sum(axis=axis, keepdims=keepdims), lambda a, axis,\
            keepdims: a.sum(axis=axis, keepdims=keepdims), dtype='f8').compute()
        m.{outer|dot}(D(x), D(y)).compute()
        m.cov(D(X)).compute()
        m.isin(D(i), [1, 2]).compute()
        m.digitize(D(x), np.array([-1.0, 0.0])).compute()
        m.{ones_like|zeros_like}(D(X)).compute()
        m.broadcast_to(D(x), (3, 40)).compute()
        m.argtopk(D(x), 3).compute()
        m.average(D(X), axis=0).compute()
        m.{tril|triu}(D(S)).compute()
        m.repeat(D(x), 2).compute()
        D(X)._meta
        D(X).persist().sum().compute()
        D(X).blocks[0].compute()
        m.count_nonzero(D(i)).compute()
        m.nonzero(D(i))[0].compute()
        m.gradient(D(x), axis=0).compute()
        m.compress(np.asarray(c) > 0, D(X), axis=0).compute()
    """,
    "xarray": """
        A(X).{sum|mean|max|min|std|var|prod|median|argmax|count}().data
        A(X).{sum|mean|max|min|std|var|prod|median|argmax|count}('a').data
        A(n).{sum|mean|max|min|std|var|prod|median|argmax|count}('a').data
        A(n).{isnull|notnull}().data
        A(n).fillna(0.0).data
        A(n).dropna('a').data
        A(n).interpolate_na('a').data
        (A(X) {+|-|*|/|**|>|==|%} 2).data
        (A(X) + A(X)[0]).data
        (1 / A(X)).data
        A(X).where(A(X) > 0).data
        A(X).where(A(X) > 0, 0.0).data
        m.where(A(X) > 0, A(X), 0.0).data
        A(X).shift(a=1{|, fill_value=0.0}).data
        A(X).roll(a=1).data
        A(X).pad(a=1{|, mode='edge'|, mode='reflect'|, constant_values=0.0}).data
        A(X).rolling(a=3).{mean|sum|max|min|std|count|median}().data
        A(X).rolling(a=3, center=True).construct('w').data
        A(X).rolling(a=3, min_periods=1).reduce(lambda v, axis: v.sum(axis=axis)).data
        A(X).coarsen(a=4).{mean|sum|max}().data
        A(X).quantile({0.5|[0.2, 0.7]}{|, dim='a'}).data
        G(X).groupby('g').{mean|sum|max|std|median|first|count}().data
        G(X).groupby('g').map(lambda v: v - v.mean('a')).data
        (G(X).groupby('g') - G(X).groupby('g').mean()).data
        G(X).groupby_bins('a', 4).mean().data
        A(X).{cumsum|cumprod}('a').data
        A(X).diff('a').data
        A(X).differentiate('b').data
        A(X).integrate('b').data
        A(X).transpose('b', 'a').data
        A(X).stack(k=('a', 'b')).data
        A(X).coarsen(a=4).construct(a=('o', 'i')).data
        A(X).isel(a=slice(0, 5)).data
        A(X).isel(a=[0, 3]).data
        A(X)[3].data
        A(X).sel(b=[1, 2]).data
        A(X).interp(b=[0.5, 1.5]).data
        A(X).reindex(b=[1, 2, 9]).data
        A(X).sortby('b', ascending=False).data
        A(X).clip(-1, 1).data
        A(X).round(1).data
        A(X).astype('float32').data
        A(X).dot(A(X)).data
        m.dot(A(X), A(X), dim='a').data
        m.concat([A(X), A(X)], 'a').data
        m.merge([A(X).to_dataset(name='u')])['u'].data
        A(X).to_dataset(name='u').mean()['u'].data
        m.{corr|cov}(A(X), A(X) * 2).data
        m.cross(A(X[:, :3]), A(X[:, :3]), dim='b').data
        m.polyval(A(X), m.DataArray([1.0, 2.0], dims='degree', coords={'degree': [0, 1]})).data
        A(X).polyfit('b', 1).polyfit_coefficients.data
        A(X).idxmax('b').data
        A(X).weighted(m.DataArray(np.arange(40.0), dims='a')).mean('a').data
        A(X).expand_dims('q').data
        A(X).broadcast_like(A(X)).data
        A(X).to_numpy()
        A(X).values
        A(X).copy().data
        A(X).equals(A(X))
        A(X).{any|all}().data
        A(X).isin([1.0]).data
        np.{exp|sqrt|abs}(A(P.reshape(20, 8))).data
        np.add(A(X), 1).data
        m.apply_ufunc(lambda v: v * 2, A(X)).data
        m.{ones_like|zeros_like}(A(X)).data
        m.testing.assert_allclose(A(X), A(X))
        m.ufuncs.exp(A(X)).data
        repr(A(X)).split()[1]
        A(X)._repr_html_()[:5]
        A(X).map_blocks(lambda v: v * 2).data
        A(X).chunk(a=10).sum('a').compute().data
        A(X).plot() is not None
        A(X).to_pandas().sum().to_numpy()
        A(X).to_series().sum()
        A(X).curvefit('b', lambda t, k: k * t)['curvefit_coefficients'].data
        A(X).pipe(lambda v: v + 1).data
    """,
    "pandas": """
        m.Series(x).{sum|mean|std}()
        m.Series(x).rolling(3).mean().to_numpy()
        m.DataFrame(X).{sum|mean|std|max}().to_numpy()
        m.DataFrame({'a': x, 'b': y}).mean().to_numpy()
        m.DataFrame({'a': x, 'g': i}).groupby('g').mean().to_numpy()
        m.DataFrame(X, columns=list('abcdefgh'), index=i).to_numpy()
        m.Index(i).to_numpy()
        m.Categorical(i).codes
        m.{cut|qcut}(x, 3).codes
        m.unique(i)
        m.factorize(i)[0]
        m.isna(n)
        m.to_datetime(i).to_numpy().astype('i8')
        m.concat([m.Series(x), m.Series(y)]).to_numpy()
        (m.Series(np.asarray(x)) + x).to_numpy()
        (x + m.Series(np.asarray(x))).to_numpy()
        (m.DataFrame(np.asarray(X)) * X).to_numpy()
        m.Series(np.asarray(x)).isin(x).to_numpy()
        m.Series(np.asarray(x))[c > 0].to_numpy()
        m.Series(np.asarray(x)).where(c > 0, 0.0).to_numpy()
        m.array(x).to_numpy()
        m.get_dummies(m.Series(i)).to_numpy()
        m.DataFrame(np.asarray(X)).iloc[i].to_numpy()
        m.crosstab(i, c).to_numpy()
        m.Series(i).map(lambda v: v + 1).to_numpy()
        m.DataFrame(X).assign(k=x)['k'].to_numpy()
    """,
    "matplotlib.pyplot": """
        m.plot(x)[0].get_ydata()
        m.plot(x, y)[0].get_xdata()
        m.plot(X)[1].get_ydata()
        m.scatter(x, y, s=p, c=s).get_offsets()
        m.imshow(X).get_array()
        m.hist(x)[0]
        m.hist2d(x, y)[0]
        m.bar(i, p)[0].get_height()
        m.errorbar(x, y, yerr=p)[0].get_ydata()
        m.fill_between(xp.arange(40), x).get_paths()[0].vertices
        m.{contour|contourf|pcolormesh|matshow|pcolor|spy}(X) is not None
        m.{boxplot|violinplot}(X) is not None
        m.quiver(x, y, x, y).U
        m.stem(x)[0].get_ydata()
        m.step(x, y)[0].get_ydata()
        m.stairs(x[:5]).get_data()[0]
        m.{vlines|hlines}(x, 0, 1) is not None
        m.{loglog|semilogx|semilogy}(p, p)[0].get_ydata()
        m.pie(p[:4])[0] is not None
        m.specgram(x, NFFT=8, noverlap=4)[0]
        m.psd(x, NFFT=8)[0]
        m.stackplot(xp.arange(40), p, p) is not None
        m.eventplot(x) is not None
        m.hexbin(x, y).get_array()
        m.tricontourf(x, y, p) is not None
        m.text(x[0], y[0], 'a') is not None
        m.axhline(x[0]).get_ydata()
        m.xlim(x.min(), x.max())[0]
        m.polar(x, p)[0].get_ydata()
        m.subplots(subplot_kw={'projection': '3d'})[1].plot_surface(X, X, X) is not None
        m.matplotlib.colors.Normalize()(x)
        m.cm.viridis(s)
    """,
    "jax": """
        m.numpy.asarray(f)
        m.numpy.from_dlpack(f)
        m.dlpack.from_dlpack(f)
        m.numpy.{exp|sum|sort}(m.numpy.asarray(f))
        xp.from_dlpack(m.numpy.asarray(np.asarray(f))) if hasattr(xp, 'from_dlpack') else 0
        m.jit(lambda v: v * 2)(m.numpy.asarray(f))
        m.device_put(f)
    """,
    "numba": """
        m.njit(lambda v: v.sum())(np.asarray(x))
        m.njit(lambda v: v * 2)(np.asarray(X))
        m.njit(lambda v: v.sum())(x)
        m.vectorize(lambda v: v * 2.0)(x)
        m.guvectorize(['void(f8[:], f8[:])'], '(n)->()')(total)(X)
    """,
}


def total(v, out):
    out[0] = v.sum()


def lines(text):
    """The calls of a table: a line with {a|b} is one call with each."""
    for line in filter(None, map(str.strip, text.splitlines())):
        yield from _expand(line)


def _expand(line):
    m = re.search(r"\{([^{}]*\|[^{}]*)\}", line)
    if not m:
        return [line]
    return [e for w in m[1].split("|") for e in _expand(line[: m.start()] + w.strip() + line[m.end() :])]


_PARTS = {
    "scipy.signal": ["windows"],
    "scipy.spatial": ["transform", "distance"],
    "scipy.cluster": ["vq", "hierarchy"],
    "scipy.optimize": ["elementwise"],
    "scipy.sparse": ["linalg", "csgraph"],
    "sklearn": "calibration cluster covariance cross_decomposition decomposition discriminant_analysis ensemble "
    "feature_selection gaussian_process impute kernel_approximation kernel_ridge linear_model manifold metrics mixture "
    "model_selection naive_bayes neighbors neural_network pipeline preprocessing svm tree utils.extmath "
    "utils.validation utils.multiclass utils.class_weight metrics.pairwise".split(),
    "xarray": ["testing", "ufuncs"],
    "jax": ["numpy", "dlpack"],
}
TABLES = {**SCIPY, **SKLEARN, **OTHERS}


def _space(library, convert, xp):
    module = importlib.import_module(library)
    for part in _PARTS.get(library, []):
        importlib.import_module(f"{library}.{part}")
    space = {"np": np, "xp": xp, "total": total, **{name: convert(a) for name, a in ARRAYS.items()}}
    space.update(m=module, sp=module, sk=module, ar=convert(np.arange(40.0)))
    if library == "scipy.signal":
        space["sos"] = convert(module.butter(4, 0.3, output="sos"))
    if library == "dask.array":
        space["D"] = lambda a: module.from_array(a, chunks=10, asarray=False)
    if library == "xarray":
        named = lambda a: module.DataArray(
            a, dims=("a", "b"), coords={"a": np.arange(len(a)), "b": np.arange(a.shape[1])}
        )
        space.update(A=named, G=lambda a: named(a).assign_coords(g=("a", np.arange(len(a)) % 3)))
    return space


def leaves(value):
    """What a result holds, taken apart."""
    if isinstance(value, (tuple, list)):
        return [leaf for v in value for leaf in leaves(v)]
    if isinstance(value, dict):
        return [leaf for v in value.values() for leaf in leaves(v)]
    if type(value).__module__.startswith("scipy") and hasattr(value, "__dict__"):
        return leaves({k: v for k, v in vars(value).items() if not k.startswith("_")})
    return [value]


def _differ(got, want):
    if isinstance(want, (np.ndarray, np.generic, float, int, complex)):
        got, want = np.asarray(got), np.asarray(want)
        if got.shape != want.shape:
            return f"shape {got.shape}, not {want.shape}"
        scale = float(np.max(np.abs(want[np.isfinite(want)]), initial=0)) if want.dtype.kind in "fc" else 0
        if {want.dtype.kind, got.dtype.kind} <= set("biufc") and not np.allclose(
            got, want, rtol=1e-7, atol=1e-9 * max(scale, 1), equal_nan=True
        ):
            return f"{got.reshape(-1)[:4]}, not {want.reshape(-1)[:4]}"
    elif isinstance(want, (str, bytes, type(None))) and got != want:
        return f"{got!r}, not {want!r}"
    return None


def attempt(call, ours, theirs):
    """(what became of the call, details): 'nvm', 'NumPy' or 'value' (a result without arrays) for a right result,
    'refused', 'wrong'; None where NumPy's arrays do not do it either."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = leaves(eval(call, theirs))
        except Exception as e:
            return None, f"{type(e).__name__}: {e}"
        try:
            got = leaves(eval(call, ours))
            nvm.eval([g for g in got if isinstance(g, nvm.Array)])
        except Exception as e:
            return "refused", f"{type(e).__name__}: {e}"
    if len(got) != len(want):
        return "wrong", f"{len(got)} parts, not {len(want)}"
    for g, w in zip(got, want):
        if isinstance(w, (np.ndarray, np.generic)) and np.asarray(w).dtype.kind in "biufc":
            if difference := _differ(g, w):
                return "wrong", difference
        elif difference := _differ(g, w):
            return "wrong", difference
    if any(isinstance(g, nvm.Array) for g in got):
        return "nvm", ""
    return ("NumPy" if any(isinstance(g, (np.ndarray, np.generic)) for g in got) else "value"), ""


def run(library):
    """{call: (what became of it, details)}"""
    if library == "sklearn":
        importlib.import_module("sklearn").set_config(array_api_dispatch=True)
    if library in ("einops", "dask.array", "pandas", "xarray"):
        importlib.import_module("nvm." + library.split(".")[0])
    made = {}
    for call in lines(TABLES[library]):
        ours, theirs = _space(library, nvm.asarray, nvm), _space(library, np.copy, np)
        made[call] = attempt(call, ours, theirs)
    return made


def main(chosen):
    for library in TABLES:
        if chosen and library not in chosen:
            continue
        found = run(library)
        for call, (what, why) in found.items():
            if what in ("refused", "wrong", None, "NumPy"):
                print(f"{what}\t{call}\t{why[:300]}")
        counts = [sum(w == k for w, _ in found.values()) for k in ("nvm", "value", "NumPy", "refused", "wrong")]
        print(library, *counts, "not:", sum(w is None for w, _ in found.values()), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
