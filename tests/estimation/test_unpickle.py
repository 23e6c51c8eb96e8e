"""Hostile and damaged pickles: refused with one clear line, and nothing in them is run."""

import copyreg
import io
import os
import pickle
import struct
import sys
import tracemalloc
from contextlib import contextmanager, suppress

import numpy as np
import pytest

from disco_cli.errors import ArtifactError
from disco_cli.estimation import inert
from disco_cli.estimation.unpickle import MAX_BYTES, read_pickle

_events = []
_watching = []


def _watch(event, arguments):
    # What running anything would raise: imports, look-ups, code, files, processes.
    if _watching and event.partition(".")[0] in {
        "import", "pickle", "exec", "compile", "open", "os", "subprocess", "shutil", "socket",
        "ctypes", "marshal", "code",
    }:  # fmt: skip
        _events.append((event, arguments))


sys.addaudithook(_watch)


@contextmanager
def nothing_runs():
    _events.clear()
    _watching.append(True)
    try:
        yield
    finally:
        _watching.clear()
    assert not _events


def refusal(data):
    """Read it, watched, and return what the error says."""
    with nothing_runs():
        try:
            read_pickle(data, "db/rf.pkl")
        except ArtifactError as error:
            message = str(error)
        else:
            message = None
    assert message is not None, "was read"
    assert message.startswith("db/rf.pkl: ")
    assert "\n" not in message
    assert len(message) < 300
    return message


class Call:
    """An object whose pickle calls something."""

    def __init__(self, *reduced):
        self.reduced = reduced

    def __reduce__(self):
        return self.reduced


def call_by_name(module, name, *arguments, protocol=4):
    """Pickle a call of a global that need not exist here."""
    content = pickle.dumps(arguments, protocol)
    body = content[2 : content.rindex(b".")]
    return (
        bytes([0x80, protocol])
        + f"c{module}\n{name}\n".encode()
        + (body if body[:1] != b"\x95" else body[9:])
        + b"R."
    )


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (os.system, ("touch {marker}",)),
        (eval, ("open({marker!r}, 'w')",)),
        (exec, ("open({marker!r}, 'w')",)),
        (getattr, ("{marker}", "join")),
        (open, ("{marker}", "w")),
        (__import__, ("os",)),
        (os.mkdir, ("{marker}",)),
        (pickle.loads, (b"cos\nsystem\n(S'x'\ntR.",)),
        (np.load, ("{marker}",)),
        (np.fromfile, ("{marker}",)),
        (np.memmap, ("{marker}", "u1", "w+", 0, (4,))),
        (np.ndarray, ((1 << 40,),)),
        (np.zeros, (1 << 40,)),
        (bytearray, (1 << 40,)),
        (copyreg._reconstructor, (dict, object, None)),
    ],
)
def test_calls_are_refused_by_name(protocol, function, arguments, tmp_path):
    marker = tmp_path / "marker"
    filled = tuple(a.format(marker=str(marker)) if isinstance(a, str) else a for a in arguments)
    message = refusal(pickle.dumps(Call(function, filled), protocol))
    assert "nothing in it was run" in message
    assert function.__name__ in message
    assert not marker.exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("builtins", "eval"),
        ("operator", "attrgetter"),
        ("_codecs", "encode"),
        ("functools", "partial"),
        ("numpy", "load"),
        ("numpy.lib.npyio", "load"),
        ("numpy.lib._npyio_impl", "load"),
        ("numpy", "ndarray.tofile"),
        ("numpy.testing._private.utils", "runstring"),
        ("numpy.f2py.diagnose", "run_command"),
        ("numpy.core.multiarray", "array"),
        ("numpy.core.multiarray", "fromfile"),
        ("numpy._core.multiarray", "fromstring"),
        ("numpy.core._multiarray_umath", "_reconstruct"),
        ("sklearn.ensemble._forest", "ForestRegressor"),
        ("sklearn.ensemble", "RandomForestRegressor"),
        ("sklearn.tree._tree", "DTYPE"),
        ("joblib.numpy_pickle", "NumpyArrayWrapper"),
        ("disco_cli.estimation.inert", "call"),
        ("__main__", "x\ry"),
        ("a" * 5000, "b"),
    ],
)
def test_names_off_the_list_are_refused(module, name):
    message = refusal(call_by_name(module, name, "x"))
    assert "is no part of a random forest" in message
    assert module[:30] in message


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("sklearn.tree._tree", "Tree.__reduce__"),
        ("numpy", "dtype.__class__"),
        ("numpy", "core.multiarray._reconstruct"),
        ("sklearn", "ensemble._forest.RandomForestRegressor"),
        ("numpy", 5),
        (b"numpy", "dtype"),
        (None, ("numpy", "dtype")),
    ],
)
def test_stack_global_with_dotted_or_odd_names_is_refused(module, name):
    def text(value):
        if isinstance(value, str):
            return b"\x8c" + bytes([len(value)]) + value.encode()
        if isinstance(value, bytes):
            return b"C" + bytes([len(value)]) + value
        if isinstance(value, tuple):
            return b"".join(map(text, value)) + b"\x86"
        return b"N" if value is None else b"K" + bytes([value])

    assert "it asks for" in refusal(b"\x80\x04" + text(module) + text(name) + b"\x93.")


def test_nested_call_is_refused_at_the_innermost():
    payload = [{"a": (Call(print, (Call(os.system, ("true",)),)),)}]
    assert "print" in refusal(pickle.dumps(payload, 4))


def test_payload_after_a_good_beginning_is_refused():
    data = pickle.dumps([np.arange(3.0), Call(os.system, ("true",))], 4)
    assert "system" in refusal(data)


@pytest.mark.parametrize(
    "instruction",
    [
        b"\x82\x01",  # extension code
        b"\x83\x01\x00",
        b"\x84\x01\x00\x00\x00",
        b"Pname\n",  # persistent id
        b"K\x01Q",
        b"(cos\nsystem\no",  # instance of protocol 0
        b"(S'x'\nios\nsystem\n",
        b"(K\x01\x90",  # set, frozen set
        b"\x8f",
        b"\x91",
        b"\x97",  # buffers out of band
        b"\x98",
        b"\x92",  # new object with keywords
        b"I1\n",
        b"S'x'\n",
        b"\x8b\xff\xff\xff\x7f",  # integer of 2 GB
        b"2",
        b"\x00",
        b"\xff",
    ],
)
def test_instructions_without_a_place_in_a_forest_are_refused(instruction):
    message = refusal(b"\x80\x04" + instruction + b".")
    assert "has no place in a forest" in message or "it asks for" in message


def test_extension_registry_is_not_consulted():
    copyreg.add_extension("os", "system", 240)
    try:
        message = refusal(b"\x80\x04\x82\xf0\x8c\x04true\x85R.")
    finally:
        copyreg.remove_extension("os", "system", 240)
    assert "0x82" in message


@pytest.mark.parametrize("protocol", [0, 1, 2])
def test_old_protocols_are_refused(protocol):
    assert refusal(pickle.dumps([1, b"x", 2.5], protocol))


@pytest.mark.parametrize("protocol", [3, 4, 5])
def test_plain_data_and_arrays_are_read(protocol):
    plain = {"a": [None, True, False, 0, 255, 256, 70000, -1, 1 << 70], "b": (1.5, "é", b"z", ())}
    plain |= {"c": ("x",) * 3, "d": {"long": "x" * 300, "bytes": bytes(300)}, "e": (1, 2, 3, 4)}
    assert read_pickle(pickle.dumps(plain, protocol), "x") == plain
    record = np.dtype({"names": ["a", "b"], "formats": ["<i8", "u1"], "itemsize": 16})
    for array in (
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        np.zeros((0, 4), np.float32),
        np.array([True, False]),
        np.array(3.5),
        np.array([(1, 2), (3, 4)], record),
    ):
        back = read_pickle(pickle.dumps(array, protocol), "x").value
        assert back.dtype == array.dtype
        assert back.tolist() == array.tolist()
        assert not back.flags.writeable
    assert read_pickle(pickle.dumps(np.float64(2.5), protocol), "x") == 2.5
    assert read_pickle(pickle.dumps(np.int32(-7), protocol), "x") == -7


@pytest.mark.parametrize("protocol", [3, 4, 5])
@pytest.mark.parametrize(
    "array",
    [
        np.array([None, 1], dtype=object),
        np.array([("x", None)], dtype=[("a", "U1"), ("b", object)]),
        np.array(["text"]),
        np.array([b"bytes"]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([1j]),
        np.zeros(1, dtype=[("a", "f8", (1000, 1000))]),
        np.zeros(1, dtype=[("a", [("b", "f8")])]),
        np.zeros(1, dtype=np.longdouble),
    ],
)
def test_arrays_of_anything_but_numbers_are_refused(protocol, array):
    assert refusal(pickle.dumps(array, protocol))


def test_array_subclasses_are_refused():
    for array in (np.ma.masked_array([1.0]), np.rec.array([(1.0,)])):
        assert "it asks for" in refusal(pickle.dumps(array, 4))


def handmade(*parts):
    return b"\x80\x04" + b"".join(parts) + b"."


DTYPE = b"cnumpy\ndtype\n\x8c\x02f8\x89\x88\x87R(K\x03\x8c\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
RECONSTRUCT = b"cnumpy.core.multiarray\n_reconstruct\n"
BLANK = RECONSTRUCT + b"cnumpy\nndarray\nK\x00\x85C\x01b\x87R"


def array_with(shape, content=b"C\x08" + bytes(8), dtype=DTYPE):
    return handmade(BLANK, b"(K\x01", shape, dtype, b"\x89", content, b"tb")


def test_handmade_array_is_read():
    assert read_pickle(array_with(b"K\x01\x85"), "x").value.tolist() == [0.0]


@pytest.mark.parametrize(
    "data",
    [
        array_with(b"K\x02\x85"),  # more elements than bytes
        array_with(b"J\xff\xff\xff\xff\x85"),
        array_with(b"J\xff\xff\xff\x7fJ\xff\xff\xff\x7fJ\xff\xff\xff\x7f\x87", b"C\x00"),
        array_with(b"\x8a\x09" + b"\xff" * 8 + b"\x00\x85", b"C\x00"),
        array_with(b"G" + struct.pack(">d", 1.0) + b"\x85"),
        array_with(b"\x88\x85"),
        array_with(b"K\x01"),
        array_with(b"(K\x01K\x01K\x01K\x01K\x01t"),
        array_with(b"K\x01\x85", b"\x8c\x08" + b"x" * 8),
        array_with(b"K\x01\x85", b"]"),
        array_with(b"K\x01\x85", dtype=b"\x8c\x02f8"),
        array_with(b"K\x01\x85", dtype=b"cnumpy\ndtype\n"),
        array_with(b"K\x01\x85", dtype=b"cnumpy\ndtype\n\x8c\x02f8\x89\x88\x87R"),  # no byte order
        handmade(RECONSTRUCT, b"cnumpy\ndtype\nK\x00\x85C\x01b\x87R"),
        handmade(RECONSTRUCT, b"cnumpy\nndarray\n\x8a\x05\x00\x00\x00\x00\x01\x85C\x01b\x87R"),
        handmade(RECONSTRUCT, b"cnumpy\nndarray\nK\x00\x85C\x01O\x87R"),
        handmade(RECONSTRUCT, b"cnumpy\nndarray\n\x85R"),
        handmade(b"cnumpy\nndarray\nK\x05\x85R"),
        handmade(b"csklearn.ensemble._forest\nRandomForestRegressor\n)R"),
        handmade(b"csklearn.tree._tree\nTree\nK\x01\x85R"),
        handmade(b"csklearn.tree._tree\nTree\n)\x81"),
        handmade(b"csklearn.tree._tree\nTree\n}b"),
        handmade(b"csklearn.ensemble._forest\nRandomForestRegressor\nK\x01\x85\x81"),
        handmade(b"csklearn.ensemble._forest\nRandomForestRegressor\n)\x81)b"),
        handmade(b"cnumpy\nndarray\n)\x81"),
        handmade(b"K\x01}b"),  # state of a number
        handmade(b"]}b"),
        handmade(BLANK, b"}b"),
        handmade(DTYPE, b"}b"),
        handmade(b"cnumpy\ndtype\n\x8c\x01O\x89\x88\x87R"),
        handmade(b"cnumpy\ndtype\n\x8c\x0af8,(999,)f\x89\x88\x87R"),
        handmade(b"cnumpy\ndtype\nK\x01\x85R"),
        handmade(b"cnumpy\ndtype\n)R"),
        handmade(b"cnumpy.core.multiarray\nscalar\n", DTYPE, b"C\x00\x86R"),
        handmade(b"cnumpy.core.multiarray\nscalar\n", DTYPE, b"\x85R"),
        handmade(b"cnumpy.core.numeric\n_frombuffer\n(C\x08", bytes(8), DTYPE, b"K\x01\x85K\x01tR"),
        handmade(b"K\x01K\x01R"),
        handmade(b"]K\x01R"),
        handmade(b"}K\x01K\x02s"),  # keys are text
        handmade(b"}(K\x01u"),
        handmade(b"}(\x8c\x01au"),
        handmade(b"K\x01K\x01a"),
        handmade(b"a"),
        handmade(b"(e"),
        handmade(b"t"),
        handmade(b"\x87"),
        handmade(b"h\x00"),
        handmade(b"\x94"),
        handmade(b"("),
        handmade(b"NN"),
        handmade(),
        handmade(b"\x8c\x02\xff\xfe"),
        handmade(b"\x8d" + b"\xff" * 8),
        handmade(b"\x8e" + struct.pack("<Q", 1 << 40)),
        handmade(b"\x96" + struct.pack("<Q", 1 << 62)),
        handmade(b"B\xff\xff\xff\xff"),
        handmade(b"N") + b"rest",
        b"",
        b"\x80",
        b"N",
        b"PK\x03\x04 an archive",
        bytes(1000),
    ],
)
def test_damaged_or_contrived_pickles_are_refused(data):
    assert refusal(data)


def test_record_fields_must_be_numbers_inside_the_record_and_apart():
    def record(fields, size=16):
        names = b"".join(b"\x8c\x01" + name for name, _ in fields)
        items = b"".join(
            b"\x8c\x01" + name + DTYPE + b"K" + bytes([offset]) + b"\x86" for name, offset in fields
        )
        size_text = str(size).encode()
        code = b"\x8c" + bytes([len(size_text) + 1]) + b"V" + size_text
        state = (
            b"(K\x03\x8c\x01|N(" + names + b"t}(" + items + b"uK" + bytes([size]) + b"K\x01K\x10tb"
        )
        return handmade(b"cnumpy\ndtype\n", code, b"\x89\x88\x87R", state)

    assert read_pickle(record([(b"a", 0), (b"b", 8)]), "x").value.names == ("a", "b")
    for fields in ([(b"a", 0), (b"b", 4)], [(b"a", 8), (b"b", 0)], [(b"a", 9)], []):
        assert "damaged" in refusal(record(fields))
    assert "damaged" in refusal(record([(b"a", 0), (b"a", 8)]))


def test_memory_stays_small_whatever_sizes_are_named():
    tracemalloc.start()
    try:
        for data in (
            handmade(b"Nr\xff\xff\xff\xff"),  # memo of 2**32 entries
            handmade(b"\x8e" + struct.pack("<Q", 1 << 45)),
            array_with(b"J\xff\xff\xff\x7f\x85"),
        ):
            with suppress(ArtifactError):
                read_pickle(data, "x")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("unit", [b"\x85", b"]", b"(", b"}", b"K\x01\x86"])
def test_deep_nesting_neither_recurses_nor_crashes(unit):
    deep = b"N" * 1 + unit * 60_000
    for tail in (b"", b"\x85R", b"cnumpy\ndtype\n", b"b", b"\x81", b"\x8c\x01as", b"K\x01s"):
        assert refusal(b"\x80\x04" + deep + tail + b"N.")


def test_deep_tuple_as_key_or_argument_is_refused():
    deep = b"N" + b"\x85" * 60_000
    assert refusal(handmade(b"}", deep, b"Ns"))
    assert refusal(handmade(b"cnumpy\ndtype\n", deep, b"R"))
    assert refusal(handmade(RECONSTRUCT, b"cnumpy\nndarray\n", deep, b"C\x01b\x87R"))
    assert refusal(handmade(b"csklearn.ensemble._forest\nRandomForestRegressor\n", deep, b"\x81"))


def test_list_that_contains_itself_is_harmless():
    loop = []
    loop.append(loop)
    back = read_pickle(pickle.dumps(loop, 4), "x")
    assert back[0] is back


def test_too_many_instructions_or_bytes_are_refused(monkeypatch):
    monkeypatch.setattr("disco_cli.estimation.unpickle._MAX_INSTRUCTIONS", 100)
    assert "more than 100 instructions" in refusal(handmade(b"N" * 200))

    class Long(bytes):
        def __len__(self):
            return MAX_BYTES + 1

    with pytest.raises(ArtifactError, match="268,435,456 are read"):
        read_pickle(Long(), "x")


def test_stand_ins_are_inert():
    for name in ("RandomForestRegressor", "DecisionTreeRegressor"):
        module = "sklearn.ensemble._forest" if "Forest" in name else "sklearn.tree._classes"
        data = handmade(f"c{module}\n{name}\n".encode(), b")\x81}\x8c\x01aK\x07sb")
        with nothing_runs():
            made = read_pickle(data, "x")
        assert type(made) is inert.Instance
        assert made.state == {"a": 7}


def test_python_itself_would_have_run_the_payload(tmp_path):
    marker = tmp_path / "marker"
    data = pickle.dumps(Call(os.mkdir, (str(marker),)), 4)
    refusal(data)
    assert not marker.exists()
    pickle.Unpickler(io.BytesIO(data)).load()
    assert marker.exists()
