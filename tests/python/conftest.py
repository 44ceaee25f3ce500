import os

import hypothesis
import numpy as np
import pytest

import nvm

hypothesis.settings.register_profile(
    "nvm",
    deadline=None,
    derandomize=True,
    max_examples=int(os.environ.get("NVM_TEST_EXAMPLES", "60")),
    suppress_health_check=list(hypothesis.HealthCheck),
    database=None,
)
hypothesis.settings.load_profile("nvm")


@pytest.fixture
def rng():
    return np.random.default_rng(20)


@pytest.fixture(autouse=True)
def no_numpy_warnings():
    with np.errstate(all="ignore"):
        yield


def pytest_report_header(config):
    return nvm.info().rstrip().splitlines()
