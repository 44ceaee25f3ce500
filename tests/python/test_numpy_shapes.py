"""nvm.numpy's functions of shapes, joining and splitting, against NumPy's."""

import pytest

from numpy_cases import check_all

TABLES = {
    "shapes": """
        np.shape({any})
        np.ndim({any})
        np.size({any}, {axes})
        np.shape([[1, 2], [3, 4]])
        np.reshape({any}, -1)
        np.reshape({any}, (2, -1))
        np.reshape(t, (4, 6), order={order})
        np.reshape(t, (7, 4))
        np.reshape(m, (3, 4), 'X')
        np.ravel({any}, 'C')
        np.ravel({any}, 'F')
        np.ravel(m, 'A')
        np.squeeze(t[:1, :, :1], {axes})
        np.squeeze(m, 0)
        np.expand_dims({few}, {one})
        np.expand_dims(m, (0, -1))
        np.expand_dims(m, (0, 0))
        np.matrix_transpose({any})
    """,
    "axes": """
        np.transpose({any})
        np.transpose(t, {order3})
        np.permute_dims(t, {order3})
        np.swapaxes({few}, {one}, {one})
        np.moveaxis({few}, {one}, {one})
        np.moveaxis(t, (0, 1), (1, 2))
        np.moveaxis(t, (0, 1), (2,))
        np.rollaxis(t, {one}, {k})
    """,
    "at least": """
        np.atleast_1d({any})
        np.atleast_2d({any})
        np.atleast_3d({any})
        np.atleast_2d(v, 1.0, m)
        np.atleast_1d()
    """,
    "order": """
        np.flip({any}, {axes})
        np.fliplr({any})
        np.flipud({any})
        np.rot90({few}, {k})
        np.rot90(t, {k}, (1, 2))
        np.rot90(t, 1, (2, 0))
        np.rot90(m, 1, (0, 0))
        np.rot90(m, 1, (0, 5))
        np.roll({any}, {k})
        np.roll({few}, {k}, {axis})
        np.roll(t, (1, 2), (0, 1))
        np.roll(t, (1, 2), 1)
        np.roll(t, (1, 2), (0, 1, 2))
    """,
    "repeated": """
        np.tile({any}, {reps})
        np.tile(m, -1)
        np.repeat({few}, 2, {axis})
        np.repeat(m, [1, 0, 2], 0)
        np.repeat(m, [1, 0], 0)
        np.repeat(m, -1)
        np.resize({few}, {shape})
        np.pad(m, 1)
        np.pad(m, ((1, 0), (0, 2)), mode={mode})
        np.pad(v, (2, 1), 'constant', constant_values=(4, 6))
        np.pad(v, (2, 1), 'linear_ramp', end_values=(4, 6))
        np.pad(v, (2, 1), 'nonsense')
        np.broadcast_to({few}, (2, 3, 4))
        np.broadcast_to(v, 5)
        np.broadcast_arrays(m, 1.0, [[1], [2], [3]])
        np.broadcast_arrays(m, v)
        np.broadcast_shapes((3, 1), (4,), 1)
        np.broadcast_shapes((3,), (4,))
        np.astype(i, {type})
        np.astype([1, 2], 'int8')
    """,
    "copyto": """
        x = np.zeros((3, 4)); np.copyto(x, {any}); x
        x = np.zeros((3, 4)); np.copyto(x, {few}, where=b); x
        x = np.zeros((3, 4)); np.copyto(x, 2, where=[True, False, True, False]); x
        x = np.zeros((3, 4), int); np.copyto(x, m); x
        x = np.zeros((3, 4), int); np.copyto(x, m, casting='unsafe'); x
        np.copyto([1, 2], v)
        x = np.zeros(2, {type}); np.copyto(x, {number}); x
        x = np.zeros(2, {type}); np.copyto(x, {number}, where=[True, False]); x
        x = np.zeros(2, int); np.copyto(x, 2.5, casting='unsafe'); x
        x = np.zeros(2, int); np.copyto(x, True, 'no'); x
    """,
    "joining": """
        np.{join}([{any}, {any}])
        np.{join}([{few}])
        np.{join}([])
        np.{join}(5)
        np.concatenate([{few}, {few}], {axis})
        np.concatenate([{few}, 1.0])
        np.concatenate([m, s], dtype={type})
        np.concatenate([m, i], dtype='int64', casting='unsafe')
        np.concatenate([m, m], out=np.zeros((6, 4)))
        np.concatenate([m, m], out=np.zeros((6, 4), np.float32))
        np.concatenate([m, m], out=np.zeros((6, 4), int))
        np.concatenate([m, m], out=np.zeros((6, 3)))
        np.concatenate([m, m], out=np.zeros((6, 4)), dtype=float)
        np.stack([{few}, {few}], {one})
        np.stack([m, m], 1, dtype=np.float32)
        np.append({few}, {few})
        np.append(m, [[1, 2, 3, 4]], 0)
        np.append(m, [1, 2], 0)
        np.block([[m, m], [i, i]])
        np.block([v, 1.0, v])
        np.block([[m, t]])
        np.block(m)
        np.block(1)
        np.block([[1, 2], [3]])
        np.block([[1, 2], 3])
        np.block([])
        np.block((m, m))
    """,
    "splitting": """
        np.array_split({few}, {sections}, {one})
        np.split({few}, {sections}, {one})
        np.{splitting}({any}, {sections})
        np.split(m, [1, 5, 2], 1)
        np.unstack(t, axis={one})
        np.unstack(z)
    """,
    "inserting": """
        np.delete({few}, {at}, {axis})
        np.delete(m, [True, False, True], 0)
        np.delete(m, [0.5], 0)
        np.insert({few}, {at1}, 9, {axis})
        np.insert(m, 1, [1, 2, 3], 1)
        np.insert(m, [1], [[1], [2], [3]], 1)
        np.insert(m, [1, 2], [[1, 2], [3, 4], [5, 6]], 1)
        np.insert(m, 1, [1, 2], 1)
        np.insert(m, [2, 2], 7)
        np.insert([1, 2, 3], {position}, [7, 8, 9])
        np.insert(t, {position}, t[:, :1], 1)
        np.insert(t, 1, t[:, 0], 1)
        np.insert(i, [0, 3], [1.7, 2.6])
        np.insert(m, np.array([True, False, False, True]), 7, 1)
        np.trim_zeros(np.array({padded}), {trim})
        np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]))
        np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=1)
        np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=(-1,))
        np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=(-1, 0))
        np.trim_zeros(np.array([[0, 0, 0], [0, 1, 0], [0, 2, 0]]), axis=-3)
        np.trim_zeros([1, 0], 'x')
    """,
}
SETS = {
    "order": "'C' 'F' 'A'",
    "order3": "(0,2,1) (2,0,1) (-1,0,1) (0,1) (0,0,1) (0,1,3) None",
    "reps": "0 1 2 (2,1) (2,1,3) ()",
    "shape": "7 (2,3) (5,4) 0 -1 (2,-3)",
    "mode": "'edge' 'reflect' 'symmetric' 'wrap'",
    "join": "concatenate stack vstack hstack dstack column_stack",
    "sections": "1 2 3 0 [1,2] [2] [] np.array([1,3])",
    "splitting": "vsplit hsplit dsplit",
    "at": "0 1 -1 9 -9 [0] [0,2] [-1,0] [] slice(0,2) slice(None,None,2)",
    "at1": "0 1 -1 9 -9 [0] [0,2] [] slice(0,2) slice(None,None,2)",
    "number": "2 2.5 1j True -1 300",
    "position": "1 [1] [-1] slice(1,2) np.array([False,True,False]) [[1]]",
    "padded": "[0,0,1,0,2,0] [0,0] [] [1.5,0.0]",
    "trim": "'fb' 'f' 'b' 'B'",
}


@pytest.mark.parametrize("name", TABLES)
def test_agrees_with_numpy(name):
    check_all(TABLES[name], **SETS)
