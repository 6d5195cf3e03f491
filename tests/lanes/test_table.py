"""The functions of kernels are defined twice, uncompiled and compiled: both definitions agree."""

import inspect

from featherlane import lanes
from featherlane.engine.lanes import values
from featherlane.engine.lanes.compiler import expressions, grammar, statements
from featherlane.engine.lanes.compiler.functions import FUNCTIONS
from featherlane.engine.lanes.compiler.table import BUILTINS

UNCOMPILED = {name: f for name, f in vars(values).items() if inspect.isfunction(f) and not name.startswith("_")}


def test_every_function_of_values_has_its_code_and_no_other_has():
    assert set(FUNCTIONS) == {*UNCOMPILED.values(), *BUILTINS.values()}


def test_names_and_numbers_of_arguments_agree():
    for function, compiled in FUNCTIONS.items():
        assert compiled.name == function.__name__
        if function in UNCOMPILED.values():
            parameters = inspect.signature(function).parameters.values()
            variadic = any(one.kind is one.VAR_POSITIONAL for one in parameters)
            assert compiled.arity == (None if variadic else len(parameters))


def test_all_of_the_vocabulary_is_public():
    assert UNCOMPILED.keys() <= set(lanes.__all__)


def test_builtins_mean_the_same_uncompiled():
    assert all(vars(__import__("builtins"))[name] is f for name, f in BUILTINS.items())


def test_every_construct_that_the_grammar_allows_is_written():
    assert set(statements.STATEMENTS) == grammar.STATEMENTS
    assert set(expressions.EXPRESSIONS) == grammar.EXPRESSIONS
