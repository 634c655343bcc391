"""Vector registers in compiled code, where loops do not become vector instructions by themselves.

Such are loops over short runs and gathers of small rows. A value here is one register of 32 bytes (eight single or four
double numbers) or a row of four numbers; LLVM makes of them what the machine has. Places are counted in entries of a
contiguous array, unsigned, and are not checked: arrays must go on for `BEYOND` entries after the last that counts.
Registers live in variables and tuples only: a list of them would lie in memory that is not aligned for them.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import extending, types
from numba.core import cgutils, errors
from numba.extending import models, register_model

BYTES = 32
BEYOND = 16
intrinsic: Any = extending.intrinsic
"""Callers leave out the first argument, and give values where the function here gets their types."""


class Vector(types.Type):
    """`count` floating-point numbers."""

    def __init__(self, number: types.Float, count: int) -> None:
        self.number, self.count = number, count
        super().__init__(name=f"{number}x{count}")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        super().__init__(manager, kind, _lowered(kind))


def _lowered(kind: Vector) -> ir.VectorType:
    return ir.VectorType(ir.FloatType() if kind.number == types.float32 else ir.DoubleType(), kind.count)


def _register(number: types.Float) -> Vector:
    return Vector(number, 8 * BYTES // number.bitwidth)


def _place(context: Any, builder: Any, array: Any, value: Any, at: Any, lowered: ir.Type) -> Any:
    if array.layout != "C":
        raise errors.TypingError(f"vectors need contiguous arrays, not {array}")
    data = context.make_array(array)(context, builder, value).data
    return builder.bitcast(builder.gep(data, [at]), lowered.as_pointer())


def _load(array: Any, kind: Vector) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        found = builder.load(_place(context, builder, array, values[0], values[1], _lowered(kind)))
        found.align = array.dtype.bitwidth // 8
        return found

    return kind(array, types.uint64), generate


@intrinsic
def load(context: Any, array: Any, at: types.Integer) -> Any:
    """A register of entries from `at` on."""
    return _load(array, _register(array.dtype))


@intrinsic
def load_four(context: Any, array: Any, at: types.Integer) -> Any:
    """Four entries from `at` on."""
    return _load(array, Vector(array.dtype, 4))


@intrinsic
def store(context: Any, array: Any, at: types.Integer, vector: Vector) -> Any:
    """Write all of `vector` from `at` on."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, array, values[0], values[1], _lowered(vector))
        builder.store(values[2], place).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.uint64, vector), generate


@intrinsic
def store_three(context: Any, array: Any, at: types.Integer, vector: Vector) -> Any:
    """Write the first three of `vector` from `at` on, and no more."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        pair = ir.VectorType(_lowered(vector).element, 2)
        two = builder.shuffle_vector(values[2], values[2], ir.Constant(ir.VectorType(ir.IntType(32), 2), [0, 1]))
        place = _place(context, builder, array, values[0], values[1], pair)
        builder.store(two, place).align = array.dtype.bitwidth // 8
        third = builder.add(values[1], ir.Constant(ir.IntType(64), 2))
        last = builder.extract_element(values[2], ir.Constant(ir.IntType(32), 2))
        builder.store(last, _place(context, builder, array, values[0], third, pair.element))
        return context.get_dummy_value()

    return types.void(array, types.uint64, vector), generate


def _spread(number: types.Float, kind: Vector) -> Any:
    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        nothing = ir.Constant(_lowered(kind), ir.Undefined)
        first = builder.insert_element(nothing, values[0], ir.Constant(ir.IntType(32), 0))
        everywhere = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
        return builder.shuffle_vector(first, nothing, everywhere)

    return kind(number), generate


@intrinsic
def spread(context: Any, number: types.Float) -> Any:
    """A register of the same number."""
    return _spread(number, _register(number))


@intrinsic
def spread_four(context: Any, number: types.Float) -> Any:
    """Four times the same number."""
    return _spread(number, Vector(number, 4))


@intrinsic
def row(context: Any, x: types.Float, y: types.Float, z: types.Float) -> Any:
    """The numbers x, y, z, and a fourth that means nothing."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        vector = ir.Constant(_lowered(signature.return_type), ir.Undefined)
        for place, value in enumerate(values):
            vector = builder.insert_element(vector, value, ir.Constant(ir.IntType(32), place))
        return vector

    return Vector(x, 4)(x, y, z), generate


@intrinsic
def plus_product(context: Any, total: Vector, one: Vector, two: Vector) -> Any:
    """Of vectors of one kind: total + one · two."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        product = builder.fmul(values[1], values[2], flags=["contract"])
        return builder.fadd(values[0], product, flags=["contract"])

    return total(total, one, two), generate


@intrinsic
def widened(context: Any, vector: Vector) -> Any:
    """Single numbers as double ones."""
    kind = Vector(types.float64, vector.count)

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        return builder.fpext(values[0], _lowered(kind))

    return kind(vector), generate


@intrinsic
def root(context: Any, vector: Vector) -> Any:
    """The square root of each."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        kind = _lowered(vector)
        name = f"llvm.sqrt.v{vector.count}f{vector.number.bitwidth}"
        return builder.call(cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name), values)

    return vector(vector), generate


@intrinsic
def transposed(context: Any, one: Vector, two: Vector, three: Vector, four: Vector) -> Any:
    """Of four rows of four numbers the columns."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        def mixed(a: Any, b: Any, places: list[int]) -> Any:
            return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(ir.IntType(32), 4), places))

        even = [mixed(a, b, [0, 4, 2, 6]) for a, b in (values[:2], values[2:])]
        odd = [mixed(a, b, [1, 5, 3, 7]) for a, b in (values[:2], values[2:])]
        pairs = ((even, [0, 1, 4, 5]), (odd, [0, 1, 4, 5]), (even, [2, 3, 6, 7]), (odd, [2, 3, 6, 7]))
        return context.make_tuple(
            builder, signature.return_type, [mixed(pair[0], pair[1], places) for pair, places in pairs]
        )

    return types.UniTuple(one, 4)(one, two, three, four), generate


def _operation(symbol: Any, name: str) -> None:
    """Vectors of one kind are added, subtracted, multiplied and divided like numbers, entry by entry."""

    @intrinsic
    def operation(context: Any, one: Vector, two: Vector) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, name)(*values, flags=["contract"])

        return one(one, two), generate

    def of_vectors(one: Any, two: Any) -> Any:
        if not (isinstance(one, Vector) and one == two):
            return None

        def answer(one: Any, two: Any) -> Any:
            return operation(one, two)

        return answer

    extending.overload(symbol)(of_vectors)


_operation(operator.add, "fadd")
_operation(operator.sub, "fsub")
_operation(operator.mul, "fmul")
_operation(operator.truediv, "fdiv")
