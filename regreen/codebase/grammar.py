"""What to look for in each language's syntax tree: definitions, calls and imports, as tree-sitter queries."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal, get_args

from regreen.codebase.language import Language

if TYPE_CHECKING:
    import tree_sitter

_JAVASCRIPT = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(field_definition property: (_) @name value: (arrow_function)) @method
(call_expression function: [(identifier) @call (member_expression property: (_) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (_) @call)])
(import_statement) @import
"""
_TYPESCRIPT = """
(function_declaration name: (_) @name) @function
(generator_function_declaration name: (_) @name) @function
(class_declaration name: (_) @name) @class
(abstract_class_declaration name: (_) @name) @class
(interface_declaration name: (_) @name) @class
(type_alias_declaration name: (_) @name) @class
(enum_declaration name: (_) @name) @class
(method_definition name: (_) @name) @method
(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)]) @function
(public_field_definition name: (_) @name value: (arrow_function)) @method
(call_expression function: [(identifier) @call (member_expression property: (_) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (_) @call)])
(import_statement) @import
"""
QUERIES: dict[Language, str] = {
    "python": """
        (function_definition name: (_) @name) @function
        (class_definition name: (_) @name) @class
        (module (expression_statement (assignment left: (identifier) @name) @constant))
        (call function: [(identifier) @call (attribute attribute: (_) @call)])
        (decorator [(identifier) @call (attribute attribute: (_) @call)])
        (import_statement) @import
        (import_from_statement) @import
        """,
    "javascript": _JAVASCRIPT,
    "typescript": _TYPESCRIPT,
    "tsx": _TYPESCRIPT,
    "go": """
        (function_declaration name: (_) @name) @function
        (method_declaration name: (_) @name) @method
        (type_spec name: (_) @name) @class
        (call_expression function: [(identifier) @call (selector_expression field: (_) @call)])
        (import_spec) @import
        """,
    "rust": """
        (function_item name: (_) @name) @function
        (function_signature_item name: (_) @name) @function
        (struct_item name: (_) @name) @class
        (enum_item name: (_) @name) @class
        (trait_item name: (_) @name) @class
        (impl_item type: (_) @name) @class
        (mod_item name: (_) @name) @class
        (macro_definition name: (_) @name) @function
        (call_expression function: [
            (identifier) @call (scoped_identifier name: (_) @call) (field_expression field: (_) @call)
            (generic_function function: [(identifier) @call (scoped_identifier name: (_) @call)])])
        (macro_invocation macro: (identifier) @call)
        (use_declaration) @import
        """,
    "java": """
        (class_declaration name: (_) @name) @class
        (interface_declaration name: (_) @name) @class
        (enum_declaration name: (_) @name) @class
        (record_declaration name: (_) @name) @class
        (annotation_type_declaration name: (_) @name) @class
        (method_declaration name: (_) @name) @method
        (constructor_declaration name: (_) @name) @method
        (method_invocation name: (_) @call)
        (object_creation_expression type: (type_identifier) @call)
        (import_declaration) @import
        """,
    "ruby": """
        (method name: (_) @name) @method
        (singleton_method name: (_) @name) @method
        (class name: (_) @name) @class
        (module name: (_) @name) @class
        (call method: (_) @call)
        (body_statement (identifier) @call)
        """,
}
Kind = Literal["function", "class", "method", "constant"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@cache
def parser(language: Language) -> tree_sitter.Parser:
    """A parser for the language."""
    import tree_sitter

    return tree_sitter.Parser(_grammar(language))


@cache
def query(language: Language) -> tree_sitter.Query:
    """The compiled query for the language."""
    import tree_sitter

    return tree_sitter.Query(_grammar(language), QUERIES[language])


@cache
def _grammar(language: Language) -> tree_sitter.Language:
    import tree_sitter

    return tree_sitter.Language(_pointer(language))


def _pointer(language: Language) -> object:  # noqa: PLR0911 - one line a language
    match language:
        case "python":
            import tree_sitter_python

            return tree_sitter_python.language()
        case "javascript":
            import tree_sitter_javascript

            return tree_sitter_javascript.language()
        case "typescript":
            import tree_sitter_typescript

            return tree_sitter_typescript.language_typescript()
        case "tsx":
            import tree_sitter_typescript

            return tree_sitter_typescript.language_tsx()
        case "go":
            import tree_sitter_go

            return tree_sitter_go.language()
        case "rust":
            import tree_sitter_rust

            return tree_sitter_rust.language()
        case "java":
            import tree_sitter_java

            return tree_sitter_java.language()
        case "ruby":
            import tree_sitter_ruby

            return tree_sitter_ruby.language()
        case _:
            message = f"no grammar for {language}"
            raise ValueError(message)
