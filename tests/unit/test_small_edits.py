"""Small edits that a failure suggests: whatever its sentence, the right one is among the few that are tried."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

from regreen.fixers.recipes.small_edits import propose_small_edits
from regreen.fixers.rungs.recipe_rung import _is_a_step, find_working_edits

MOST = 16


@pytest.mark.parametrize(
    ("said", "path", "text", "after"),
    [
        ('a.py:1: in f\nE  DeprecationWarning: use fetch() instead of load_all()\n', 'a.py', 'x.load_all()\n', 'x.fetch()\n'),
        ('a.py:1: in f\nE  shop.size undefined (type Shop has no field or method size, but does have method Size)\n', 'a.py', 'shop.size()\n', 'shop.Size()\n'),
        ('a.py:1: in f\nE  error: a local variable with a similar name exists: `total`\n', 'a.py', 'print(totl)\n', 'print(total)\n'),
        ("a.py:1: in f\nE  error TS2835: Relative import paths need explicit file extensions. Did you mean './b.js'?\n", 'a.py', "import './b'\n", "import './b.js'\n"),
        ("a.py:1: in f\nE  fixture 'clientt' not found\n>       available fixtures: cache, capfd, client, tmp_path\n", 'a.py', 'def test(clientt):\n', 'def test(client):\n'),
        ("a.py:1: in f\nE  FieldError: Cannot resolve keyword 'title_' into field. Choices are: id, price, title\n", 'a.py', 'x(title_=1)\n', 'x(title=1)\n'),
        ("a.py:1: in f\nE  Error: Invalid value for '--style': 'tabble' is not one of 'table', 'list'.\n", 'a.py', "x('tabble')\n", "x('table')\n"),
        ("a.py:1: in f\nE  error: argument --color: invalid choice: 'alwas' (choose from 'never', 'always')\n", 'a.py', "x('alwas')\n", "x('always')\n"),
        ("a.py:1: in f\nE  TemplateSyntaxError: Encountered unknown tag 'endfro'. Jinja was looking for the following tags: 'endfor' or 'else'.\n", 'a.py', '{% endfro %}\n', '{% endfor %}\n'),
        ('a.py:1: in f\nE  error: Cannot query field "pricee" on type "Item". Did you mean "price"?\n\na.py:1:5\n', 'a.py', 'pricee(1)\n', 'price(1)\n'),
        ('a.py:1: in f\nE  Error: An input variable with the name "shop_nam" has not been declared. Did you\nmean "shop_name"?\n', 'a.py', 'var.shop_nam\n', 'var.shop_name\n'),
        ('a.py:1: in f\nE  error: "str" has no attribute "uppr"; maybe "upper" or "lower"?\n', 'a.py', 'x.uppr()\n', 'x.upper()\n'),
        ("a.py:1: in f\nE  error TS2551: Property 'namex' does not exist on type 'Item'. Did you mean 'name'?\n", 'a.py', 'item.namex\n', 'item.name\n'),
        ("a.py:1: in f\nE  AttributeError: 'Item' object has no attribute 'namex'. Did you mean: 'name'?\n", 'a.py', 'item.namex\n', 'item.name\n'),
        ("a.py:1: in f\nE  NameError: name 'totl' is not defined. Did you mean: 'total'?\n", 'a.py', 'print(totl, x.totl_)\n', 'print(total, x.totl_)\n'),
        ('  File "a.py", line 1\n    print x\n    ^\nSyntaxError: Missing parentheses in call to \'print\'. Did you mean print(...)?', 'a.py', 'print x, y\n', 'print(x, y)\n'),
        ('  File "a.py", line 1\n    print x\n    ^\nSyntaxError: Missing parentheses in call to \'print\'. Did you mean print(...)?', 'a.py', "print 'a#'  # hi, 'b'\n", "print('a#')  # hi, 'b'\n"),
        ('a.go:1:2: declared and not used: x', 'a.go', '\tx := f(x)\n', '\t_ = f(x)\n'),
        ('vet: ./a.go:1:2: x declared and not used', 'a.go', '\tx, err := f(x)\n', '\t_, err := f(x)\n'),
        ('a.go:1:2: declared and not used: x', 'a.go', '\tvar x = f(x)\n', '\tvar _ = f(x)\n'),
        ('a.c:1:6: error: unused variable ‘x’ [-Werror=unused-variable]', 'a.c', '    int x = 1;\n    int y;\n', '    int y;\n'),
        ('Can\'t locate object method "new" via package "JSON::PP" (perhaps you forgot to load "JSON::PP"?) at a.pl line 4.', 'a.pl', '#!/usr/bin/perl\nuse strict;\n', '#!/usr/bin/perl\nuse JSON::PP;\nuse strict;\n'),
        ('a.py:3: error: Name "List" is not defined\na.py:3: note: Did you forget to import it from "typing"? (Suggestion: "from typing import List")', 'a.py', '"""A."""\n\nfrom __future__ import annotations\n\nimport os\n', '"""A."""\n\nfrom __future__ import annotations\n\nfrom typing import List\nimport os\n'),
        ('a.py:3: note: Did you forget to import it from "typing"? (Suggestion: "from typing import List")', 'a.py', '"""A."""\nx: List\n', '"""A."""\nfrom typing import List\nx: List\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: \'(\' was never closed', 'a.py', 'if f(g(1):  # one\n', 'if f(g(1)):  # one\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: \'[\' was never closed', 'a.py', 'x = [1\n', 'x = [1]\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: unterminated string literal (detected at line 1)', 'a.py', 'x = f("a", \'b)\n', 'x = f("a", \'b\')\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: invalid syntax. Perhaps you forgot a comma?', 'a.py', '    1  # one\n', '    1,  # one\n'),
        ('  File "a.py", line 3\n    y = 2\nIndentationError: unexpected indent', 'a.py', 'x = 1\n\n    y = 2\n    z = 3\n', 'x = 1\n\ny = 2\nz = 3\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: unmatched \')\'', 'a.py', 'x = f(g(1)))  # )\n', 'x = f(g(1))  # )\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: closing parenthesis \')\' does not match opening parenthesis \'[\'', 'a.py', 'x = [f(1), 2):\n', 'x = [f(1), 2]:\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: closing parenthesis \']\' does not match opening parenthesis \'(\' on line 1', 'a.py', 'x[0])]\n', 'x[0]))\n'),
        ("A.java:1: error: ')' or ',' expected", 'src/A.java', '    return max(a, b; // c\n', '    return max(a, b); // c\n'),
        ('  File "a.py", line 1\n    x\n    ^\nSyntaxError: invalid syntax. Maybe you meant \'==\' or \':=\' instead of \'=\'?', 'a.py', 'if x = f(a=1):\n', 'if x == f(a=1):\n'),
        ("a.js:1:7: Expected '===' and instead saw '=='.", 'a.js', 'x == y && y === z\n', 'x === y && y === z\n'),
        ('Error: unknown command "isssuee" for "gh"\n\nDid you mean this?\n\tissue\n', 'ci/a.sh', 'x isssuee y\n', 'x issue y\n'),
        ('error: no such command: `chekk`\n\nhelp: a command with a similar name exists: `check`\n', 'ci/a.sh', 'x chekk y\n', 'x check y\n'),
        ('Unknown rule chekk-all. Did you mean check-all?\n', 'ci/a.sh', 'x chekk-all y\n', 'x check-all y\n'),
        ('error: no such option: --verbos. Did you mean --verbose?', 'ci/a.sh', 'x --verbos y\n', 'x --verbose y\n'),
        ("WARNING -  Doc file 'i.md' contains a link 'g.md', but the target is not found among documentation files. Did you mean 'g/g.md'?", 'docs/i.md', '[a](g.md) [b](x/g.md)\n', '[a](g/g.md) [b](x/g.md)\n'),
        ('a.md:3: thhe ==> the\n', 'a.md', '# A\n\nSee thhe file.\n', '# A\n\nSee the file.\n'),
        ('error: `thhe` should be `the`\n  ╭▸ ./a.md:3:5\n  │\n3 │ See thhe file.\n  ╰╴    ━━━\n', 'a.md', '# A\n\nSee thhe file.\n', '# A\n\nSee the file.\n'),
        ('a.md:3:5 - Unknown word (thhe) fix: (the)\nCSpell: Files checked: 1, Issues found: 1 in 1 file.\n', 'a.md', '# A\n\nSee thhe file.\n', '# A\n\nSee the file.\n'),
        ('Dockerfile:3 DL3020 error: Use COPY instead of ADD for files and folders\n', 'Dockerfile', 'FROM a:1\n\nADD x /x\n', 'FROM a:1\n\nCOPY x /x\n'),
        ('.github/workflows/ci.yml:6:9: unexpected key "step" for "job" section. expected one of "container", "env", "steps" [syntax-check]\n  |\n6 |    step:\n', '.github/workflows/ci.yml', 'on: push\njobs:\n  a:\n    runs-on: x\n\n    step:\n      - run: a\n', 'on: push\njobs:\n  a:\n    runs-on: x\n\n    steps:\n      - run: a\n'),
        ("\nsrc/a.js\n  2:7  error  Identifier 'foo_bar' is not in camel case  camelcase\n\n✖ 1 problem\n", 'src/a.js', '\nconst foo_bar = 1;\nuse(foo_bar);\n', '\nconst fooBar = 1;\nuse(fooBar);\n'),
        ('shop/a.py:2:0: C0103: Function name "fooBar" doesn\'t conform to snake_case naming style (invalid-name)\n', 'shop/a.py', '\ndef fooBar():\n    return 1\n', '\ndef foo_bar():\n    return 1\n'),
        ('conf/a.yaml\n  1:1       error    missing document start "---"  (document-start)\n', 'conf/a.yaml', 'a: 1\n', '---\na: 1\n'),
        ('conf/a.yaml\n  2:4       error    truthy value should be one of [false, true]  (truthy)\n', 'conf/a.yaml', '---\na: yes\n', '---\na: true\n'),
        ('conf/a.yaml\n  2:5       error    too many spaces after colon  (colons)\n', 'conf/a.yaml', '---\na:   1\n', '---\na: 1\n'),
        ('a.py:1:1: I002 Missing required import: `from __future__ import annotations`\n', 'a.py', '"""Doc."""\nimport os\n', '"""Doc."""\nfrom __future__ import annotations\nimport os\n'),
        ("a.swift:2:5: error: missing 'return' in a function expected to return 'Int'\n    1 + 1\n    ^\n", 'a.swift', 'func a() -> Int {\n    1 + 1\n}\n', 'func a() -> Int {\n    return 1 + 1\n}\n'),
        ("src/a.ts(2,9): error TS2801: This condition will always return true since this 'Promise<boolean>' is always defined.\n  src/a.ts(2,9)\n    Did you forget to use 'await'?\n", 'src/a.ts', 'async function a() {\n    if (ok()) {}\n}\n', 'async function a() {\n    if (await ok()) {}\n}\n'),
        ('error[E0596]: cannot borrow `v` as mutable, as it is not declared as mutable\n --> src/lib.rs:2:9\n  |\n3 |     v.push(1);\n  |     ^ cannot borrow as mutable\n  |\nhelp: consider changing this to be mutable\n  |\n2 |     let mut v = Vec::new();\n  |         +++\n', 'src/lib.rs', 'fn a() {\n    let v = Vec::new();\n    v.push(1);\n}\n', 'fn a() {\n    let mut v = Vec::new();\n    v.push(1);\n}\n'),
        ('PHP Parse error:  syntax error, unexpected token "return", expecting "," or ";" in src/a.php on line 4\nErrors parsing src/a.php\n', 'src/a.php', '<?php\nfunction a() {\n    echo 1\n    return 2;\n}\n', '<?php\nfunction a() {\n    echo 1;\n    return 2;\n}\n'),
        ("a.rb:2: syntax error, unexpected end-of-input, expecting `end'\n", 'a.rb', 'def a\n  1\n', 'def a\n  1\nend\n'),
        ("ci/a.sh: line 3: syntax error: unexpected end of file, missing `fi'\n", 'ci/a.sh', 'if true; then\n  echo\n\n', 'if true; then\n  echo\nfi\n'),
        ('parse error: Expected separator between values at line 3, column 4\npackage.json\n', 'package.json', '{\n  "a": 1\n  "b": 2\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n'),
        ("SyntaxError: conf.json: Expected ',' or '}' after property value in JSON at position 13 (line 3 column 3)\n", 'conf.json', '{\n  "a": 1\n  "b": 2\n}\n', '{\n  "a": 1,\n  "b": 2\n}\n'),
        ('main.go:3:6: func name will be used as shop.ShopOpen by other packages, and that stutters; consider calling this Open\n', 'main.go', 'package shop\n\nfunc ShopOpen() {}\n', 'package shop\n\nfunc Open() {}\n'),
        ("shop/a.py:2: FutureWarning: 'M' is deprecated and will be removed in a future version, please use 'ME' instead.\n", 'shop/a.py', "\nx = s.resample('M').sum()\n", "\nx = s.resample('ME').sum()\n"),
        ('shop/a.py:2: PydanticDeprecatedSince20: `min_items` is deprecated and will be removed, use `min_length` instead\n', 'shop/a.py', '\nx = conlist(int, min_items=1)\n', '\nx = conlist(int, min_length=1)\n'),
        ("shop/a.py:1: in <module>\n    from django.utils.translation import ugettext\nE   ImportError: cannot import name 'ugettext' from 'django.utils.translation' (/env/x.py). Did you mean: 'gettext'?\n", 'shop/a.py', "from django.utils.translation import ugettext\nx = ugettext('a')\n", "from django.utils.translation import gettext\nx = gettext('a')\n"),
        ('shop/a.py:3: DeprecationWarning: datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC).\n', 'shop/a.py', 'import datetime\n\nx = datetime.datetime.utcnow()\n', 'import datetime\n\nx = datetime.datetime.now(datetime.UTC)\n'),
        ('a.c:4:1: error: expected ‘;’ before ‘}’ token\n    3 |     return 1\n      |             ^\n      |             ;\n    4 | }\n', 'a.c', 'int a(void)\n{\n    return 1\n}\n', 'int a(void)\n{\n    return 1;\n}\n'),
        ('a.c:3:18: warning: format specifies type \'int\' but the argument has type \'long\' [-Wformat]\n    printf("%d", x);\n            ~~   ^\n            %ld\n', 'a.c', '\n\n    printf("%d", x);\n', '\n\n    printf("%ld", x);\n'),
        ("WARNING -  Doc file 'index.md' contains a link 'guid.md', but the target is not found among documentation files. Did you mean 'guide.md'?\n", 'docs/index.md', '[a](guid.md)\n', '[a](guide.md)\n'),
        ('shop/a.py:1: error: Function is missing a return type annotation  [no-untyped-def]\nshop/a.py:1: note: Use "-> None" if function does not return a value\n', 'shop/a.py', 'def a():\n    print(1)\n', 'def a() -> None:\n    print(1)\n'),
        ("src/a.ts(1,19): error TS2835: Relative import paths need explicit file extensions in ECMAScript imports. Did you mean './b.js'?\n", 'src/a.ts', "import {b} from './b';\n", "import {b} from './b.js';\n"),
        ('src/a.js:1:16: error  Use `node:fs` instead of `fs`\n', 'src/a.js', "import fs from 'fs';\n", "import fs from 'node:fs';\n"),
        ('Global symbol "$x" requires explicit package name (did you forget to declare "my $x"?) at a.pl line 2.\n', 'a.pl', 'use strict;\n$x = 1;\nprint $x;\n', 'use strict;\nmy $x = 1;\nprint $x;\n'),
        ("usage: a [-h] {build,check}\na: error: argument cmd: invalid choice: 'biuldx' (choose from 'build', 'check')\n", 'Makefile', 'x:\n\ta biuldx\n', 'x:\n\ta build\n'),
        ('[GraphQL] Unknown argument "firstt" on field "Query.items". Did you mean "first"?\nqueries/a.graphql:2:9\n', 'queries/a.graphql', '{\n  items(firstt: 1)\n}\n', '{\n  items(first: 1)\n}\n'),
        ('a.c:2:1: error: unknown type name ‘uint8_t’\n    2 | uint8_t x;\n      | ^~~~~~~\na.c:1:1: note: ‘uint8_t’ is defined in header ‘<stdint.h>’; did you forget to ‘#include <stdint.h>’?\n  +++ |+#include <stdint.h>\n    1 | \n', 'a.c', '\nuint8_t x;\n', '#include <stdint.h>\n\nuint8_t x;\n'),
        ('./main.go:4:2: declared and not used: total\n', 'main.go', 'package main\n\nfunc main() {\n\ttotal := 1\n}\n', 'package main\n\nfunc main() {\n\t_ = 1\n}\n'),
        ('a.c:2:9: error: unused variable ‘total’ [-Werror=unused-variable]\n    2 |     int total = 0;\n      |         ^~~~~\n', 'a.c', 'int f(void) {\n    int total = 0;\n    return 1;\n}\n', 'int f(void) {\n    return 1;\n}\n'),
        ("\n docs/a.md\n 3:5  error  Use 'select' instead of 'click'.  Vale.Terms\n", 'docs/a.md', '# A\n\nYou click it.\n', '# A\n\nYou select it.\n'),
        ("docs/a.md:3:5: terms: Use 'JavaScript' instead of 'Javascript'\n", 'docs/a.md', '# A\n\nThe Javascript it.\n', '# A\n\nThe JavaScript it.\n'),
        ('docs/a.md\n  3:1  ✓ error  Incorrect usage of the term: “Javascript”, use “JavaScript” instead  terminology\n', 'docs/a.md', '# A\n\nJavascript it.\n', '# A\n\nJavaScript it.\n'),
        ('css/a.css\n  2:10  ✖  Expected "#FFFFFF" to be "#FFF"  color-hex-length\n', 'css/a.css', 'a {\n  color: #FFFFFF;\n}\n', 'a {\n  color: #FFF;\n}\n'),
        ("index.html:3:3: The attribute 'algn' is not allowed. Did you mean 'align'?\n", 'index.html', "<p>\n\n  <td algn='x'>\n", "<p>\n\n  <td align='x'>\n"),
        ("shop/a.py:2: unused import 'os' (90% confidence)\n", 'shop/a.py', '\nimport os\nx = 1\n', '\nx = 1\n'),
        ("a.kt:2:9: error: Val cannot be reassigned, use 'var' instead of 'val'\n", 'a.kt', '\nval x = 1\n', '\nvar x = 1\n'),
        ("  error • a.dart:2:12 • Expected to find ';'. • expected_token\n", 'a.dart', '\nvar x = 1234\n', '\nvar x = 1234;\n'),
        ("shop/a.py:4:80: Argument 'colour' is deprecated: use 'color'\n", 'shop/a.py', '\n\n\nf(colour=1)\n', '\n\n\nf(color=1)\n'),
        ('  File "shop/a.py", line 3\n    return 1\n    ^\nIndentationError: expected an indented block after function definition on line 2\n', 'shop/a.py', '\ndef a():\nreturn 1\n', '\ndef a():\n    return 1\n'),
        ('  File "shop/a.py", line 4\n    y = 1\n         ^\nIndentationError: unindent does not match any outer indentation level\n', 'shop/a.py', 'def a():\n    x = 1\n    z = 1\n   y = 1\n', 'def a():\n    x = 1\n    z = 1\n    y = 1\n'),
        ('  File "shop/a.py", line 1\n    x = \'abc\n        ^\nSyntaxError: unterminated string literal (detected at line 1)\n', 'shop/a.py', "x = 'abc\n", "x = 'abc'\n"),
        ('  File "shop/a.py", line 2\n    1\n    ^\nSyntaxError: invalid syntax. Perhaps you forgot a comma?\n', 'shop/a.py', 'x = [\n    1\n    2,\n]\n', 'x = [\n    1,\n    2,\n]\n'),
        ('Traceback (most recent call last):\n  File "shop/a.py", line 1, in <module>\n    x = time.time()\n        ^^^^\nNameError: name \'time\' is not defined. Did you forget to import \'time\'?\n', 'shop/a.py', 'x = time.time()\n', 'import time\nx = time.time()\n'),
        ("src/a.ts(1,10): error TS6133: 'x' is declared but its value is never read.\n", 'src/a.ts', "import { x, y } from './b';\ny();\n", "import { y } from './b';\ny();\n"),
        ('./main.go:4:2: "os" imported and not used\n', 'main.go', 'package main\n\nimport (\n\t"os"\n\t"fmt"\n)\n', 'package main\n\nimport (\n\t"fmt"\n)\n'),
        ("src/a.ts(3,3): error TS1005: ',' expected.\n", 'src/a.ts', 'const a = {\n  x: 1\n  y: 2,\n};\n', 'const a = {\n  x: 1,\n  y: 2,\n};\n'),
        ("src/a.ts(1,22): error TS2353: Object literal may only specify known properties, but 'colour' does not exist in type 'A'. Did you mean to write 'color'?\n", 'src/a.ts', 'const a: A = { x: 1, colour: 2 };\n', 'const a: A = { x: 1, color: 2 };\n'),
        ('src/a.ts(1,10): error TS2724: \'"./b"\' has no exported member named \'fetchUser\'. Did you mean \'fetchUsers\'?\n', 'src/a.ts', "import { fetchUser } from './b';\nfetchUser();\n", "import { fetchUsers } from './b';\nfetchUsers();\n"),
        ('src/a.js: line 1, col 9, Error - Strings must use singlequote. (quotes)\n', 'src/a.js', 'let a = "x";\n', "let a = 'x';\n"),
        ("src/a.js:1:5: 'a' is never reassigned. Use 'const' instead. [Error/prefer-const]\n", 'src/a.js', 'let a = 1;\n', 'const a = 1;\n'),
        ("\nsrc/a.js\n  1:1  error  'consol' is not defined. Did you mean 'console'?  no-undef\n", 'src/a.js', 'consol.log(1);\n', 'console.log(1);\n'),
        ('  x eslint(eqeqeq): Expected === and instead saw ==\n   ,-[src/a.js:1:7]\n 1 | if (a == b) {}\n   :       ^^\n   `----\n  help: Prefer === operator\n', 'src/a.js', 'if (a == b) {}\n', 'if (a === b) {}\n'),
        ('src/a.js:1:1 lint/style/useConst FIXABLE ━━━━\n\n  × This let declares a variable that is only assigned once.\n\n  > 1 │ let a = 1;\n      │ ^^^\n\n  i Safe fix: Use const instead.\n\n  - let·a·=·1;\n  + const·a·=·1;\n', 'src/a.js', 'let a = 1;\n', 'const a = 1;\n'),
        ('shop/a.py:2: error: Name "Optional" is not defined  [name-defined]\nshop/a.py:2: note: Did you forget to import it from "typing"? (Suggestion: "from typing import Optional")\n', 'shop/a.py', 'import os\nx: Optional[int] = None\n', 'import os\nx: from typing import Optional[int] = None\n'),
        ("shop/a.py:1:4: R1735: Consider using '{}' instead of a call to 'dict'. (use-dict-literal)\n", 'shop/a.py', 'x = dict()\n', 'x = {}dict()\n'),
        ('shop/a.py:1: B506: Use of unsafe yaml load. Use yaml.safe_load() instead\n', 'shop/a.py', 'x = yaml.load(f)\n', 'x = yaml.safe_load(f)\n'),
        ('a.c:2:5: error: implicit declaration of function ‘pritnf’; did you mean ‘printf’? [-Werror=implicit-function-declaration]\n    2 |     pritnf("a");\n      |     ^~~~~~\n      |     printf\n', 'a.c', '\n    pritnf("a");\n', '\n    printf("a");\n'),
        ("a.cc:1:10: error: expected ';' after class\nclass A {}\n          ^\n          ;\n", 'a.cc', 'class A {}\n', 'class A {};\n'),
        ("a.cc:1:8: error: 'f' overrides a member function but is not marked 'override' [-Werror,-Winconsistent-missing-override]\n  void f();\n       ^\n", 'a.cc', '  void f();\n', '  void f() override;\n'),
        ('error: unused variable: `x`\n --> src/lib.rs:1:14\n  |\n1 | fn a() { let x = 1; }\n  |              ^ help: if this is intentional, prefix it with an underscore: `_x`\n', 'src/lib.rs', 'fn a() { let x = 1; }\n', 'fn a() { let _x = 1; }\n'),
        ('error[E0308]: mismatched types\n --> src/lib.rs:1:10\n  |\n1 | fn a() { f(s) }\n  |          - ^ expected `&str`, found `String`\n  |\nhelp: consider borrowing here\n  |\n1 | fn a() { f(&s) }\n  |            +\n', 'src/lib.rs', 'fn a() { f(s) }\n', 'fn a() { f(&s) }\n'),
        ("error[E0277]: `A` doesn't implement `Debug`\n --> src/lib.rs:2:1\n  |\nhelp: consider annotating `A` with `#[derive(Debug)]`\n  |\n1 + #[derive(Debug)]\n2 | struct A;\n  |\n", 'src/lib.rs', '\nstruct A;\n', '\n#[derive(Debug)]\nstruct A;\n'),
        ('./main.go:3:4: unknown field Narne in struct literal of type A, but does have Name\n', 'main.go', 'package a\n\nA{ Narne: 1}\n', 'package a\n\nA{ Name: 1}\n'),
        ('main.go:3:4: `recieve` is a misspelling of `receive` (misspell)\n', 'main.go', 'package a\n\n// recieve it\n', 'package a\n\n// receive it\n'),
        ('syntax error at bin/a.pl line 3, near "print"\n(Missing semicolon on previous line?)\nbin/a.pl had compilation errors.\n', 'bin/a.pl', 'use strict;\nmy $x = 1\nprint $x;\n', 'use strict;\nmy $x = 1;\nprint $x;\n'),
        ('In ci/a.sh line 2:\nx=`date`\n  ^----^ SC2006 (style): Use $(...) notation instead of legacy backticks `...`.\n\nDid you mean:\nx=$(date)\n', 'ci/a.sh', '#!/bin/sh\nx=`date`\n', '#!/bin/sh\nx=$(date)\n'),
        ('Dockerfile:2\n--------------------\n   2 | >>> FORM a\n--------------------\nERROR: dockerfile parse error on line 2: unknown instruction: FORM (did you mean FROM?)\n', 'Dockerfile', '# x\nFORM a\n', '# x\nFROM a\n'),
        ('Error: Reference to undeclared resource\n\n  on main.tf line 1, in output "a":\n   1: output "a" { value = aws_x.bb.id }\n\nA managed resource "aws_x" "bb" has not been declared in the root module.\n\nDid you mean the data resource data.aws_x.bb?\n', 'main.tf', 'output "a" { value = aws_x.bb.id }\n', 'output "a" { value = data.aws_x.bb.id }\n'),
        ('Error: Invalid type specification\n\n  on main.tf line 2, in variable "a":\n   2:   type = strnig\n\nThe keyword "strnig" is not a valid type specification. Did you mean "string"?\n', 'main.tf', 'variable "a" {\n  type = strnig\n}\n', 'variable "a" {\n  type = string\n}\n'),
        ('fqcn[action-core]: Use FQCN for builtin module actions (copy).\nplay.yml:3 Use `ansible.builtin.copy` or `ansible.legacy.copy` instead.\n', 'play.yml', '- hosts: a\n  tasks:\n    - copy: a\n', '- hosts: a\n  tasks:\n    - ansible.builtin.copy: a\n'),
        ('docs/a.md:3 MD004/ul-style Unordered list style [Expected: dash; Actual: asterisk]\n', 'docs/a.md', '# A\n\n* x\n', '# A\n\n- x\n'),
        ('docs/a.md:3:1 MD007/ul-indent Unordered list indentation [Expected: 2; Actual: 3]\n', 'docs/a.md', '# A\n- y\n   - x\n', '# A\n- y\n  - x\n'),
        ('  File "templates/a.html", line 1, in template\n    {{ x }\njinja2.exceptions.TemplateSyntaxError: unexpected \'}\', expected \'}}\'\n', 'templates/a.html', '{{ x }\n', '{{ x }}\n'),
        ('a.proto:3:10:Field name "itemName" should be lower_snake_case, such as "item_name".\n', 'a.proto', 'syntax = "proto3";\nmessage A {\n  string itemName = 1;\n}\n', 'syntax = "proto3";\nmessage A {\n  string item_name = 1;\n}\n'),
        ('meson.build:1:0: ERROR: Unknown variable "projekt". Did you mean "project"?\n', 'meson.build', "projekt('a', 'c')\n", "project('a', 'c')\n"),
        ("pyproject.toml: configuration error: `project.license` must be valid exactly by one definition\n`project` must not contain {'licence'} properties; did you mean 'license'?\n", 'pyproject.toml', "[project]\nname = 'a'\nlicence = 'MIT'\n", "[project]\nname = 'a'\nlicense = 'MIT'\n"),
        ('error: failed to parse manifest at `Cargo.toml`\n\nCaused by:\n  supported edition values are `2015`, `2018`, `2021`, or `2024`, but `2020` is unknown\n', 'Cargo.toml', '[package]\nname = "a"\nedition = "2020"\n', '[package]\nname = "a"\nedition = "2021"\n'),
        ('  File "shop/a.py", line 1\n    x = f\'{a\'\n          ^\nSyntaxError: f-string: expecting \'}\'\n', 'shop/a.py', "x = f'{a'\n", "x = f'{a}'\n"),
        ("shop/a.py:1: in <module>\n    f(colour=1)\nE   TypeError: f() got an unexpected keyword argument 'colour'. Did you mean 'color'?\n", 'shop/a.py', 'f(colour=1)\n', 'f(color=1)\n'),
        ('  File "shop/a.py", line 1\n    exec "x"\n    ^^^^^^^^\nSyntaxError: Missing parentheses in call to \'exec\'. Did you mean exec(...)?\n', 'shop/a.py', 'exec "x"\n', 'exec("x")\n'),
        ("shop/a.py:1: in <module>\nE   AttributeError: module 'numpy' has no attribute 'product'. Did you mean: 'prod'?\n", 'shop/a.py', 'x = numpy.product(a)\n', 'x = numpy.prod(a)\n'),
        ('shop/a.py:1: UserWarning: pkg_resources is deprecated as an API. Use importlib.metadata instead.\n', 'shop/a.py', 'import pkg_resources\n', 'import importlib.metadata\n'),
        ('index.html\n  1:2  error  Element <centre> is not a known element, did you mean <center>?\n', 'index.html', '<centre>\n', '<center>\n'),
        ('conf/a.yml:3:1: duplication of key "a" in mapping\n', 'conf/a.yml', 'a: 1\nb: 2\na: 3\n', 'a: 1\nb: 2\n'),
        ('conf/a.yaml\n  1:6       error    too many spaces inside brackets  (brackets)\n', 'conf/a.yaml', 'a: [  1]\n', 'a: [ 1]\n'),
        ('conf/a.yaml\n  1:2       error    missing starting space in comment  (comments)\n', 'conf/a.yaml', '#a\n', '# a\n'),
        ('conf/a.yaml\n  1:5       error    no new line character at the end of file  (new-line-at-end-of-file)\n', 'conf/a.yaml', 'a: 1', 'a: 1\n'),
        ('  File "a.py", line 2\n    \'a\': 1\n         \nSyntaxError: invalid syntax. Perhaps you forgot a comma?\n', 'a.py', "X = {\n    'a': 1\n    'b': 2,\n}\n", "X = {\n    'a': 1,\n    'b': 2,\n}\n"),
        ('Traceback (most recent call last):\n  File "a.py", line 2, in <module>\n    print(totle)\n          ^^^^^\nNameError: name \'totle\' is not defined. Did you mean: \'total\'?\n', 'a.py', 'total = 1\nprint(totle)\n', 'total = 1\nprint(total)\n'),
        ('Sorry: IndentationError: unindent does not match any outer indentation level (a.py, line 3)\n', 'a.py', 'def f():\n    x = 1\n  return x\n', 'def f():\n    x = 1\n    return x\n'),
        ('  File "a.py", line 2\n    y = f\'{x\'\n             ^\nSyntaxError: f-string: expecting \'}\'\n', 'a.py', "x = 1\ny = f'{x'\n", "x = 1\ny = f'{x}'\n"),
        ('a.c: In function ‘f’:\na.c:4:5: error: expected ‘,’ or ‘;’ before ‘return’\n    4 |     return x;\n      |     ^~~~~~\na.c:3:9: error: unused variable ‘x’ [-Werror=unused-variable]\n    3 |     int x = 1\n      |         ^\na.c:5:1: error: control reaches end of non-void function [-Werror=return-type]\n    5 | }\n      | ^\ncc1: all warnings being treated as errors\n', 'a.c', 'int f(void)\n{\n    int x = 1\n    return x;\n}\n', 'int f(void)\n{\n    int x = 1;\n    return x;\n}\n'),
        ('a.c: In function ‘f’:\na.c:3:9: error: unused variable ‘x’ [-Werror=unused-variable]\n    3 |     int x = 1, y = 2;\n      |         ^\ncc1: all warnings being treated as errors\n', 'a.c', 'int f(void)\n{\n    int x = 1, y = 2;\n    return y;\n}\n', 'int f(void)\n{\n    int y = 2;\n    return y;\n}\n'),
        ('a.c: In function ‘f’:\na.c:3:5: error: expected declaration or statement at end of input\n    3 |     return 1;\n      |     ^~~~~~\n', 'a.c', 'int f(void)\n{\n    return 1;\n', 'int f(void)\n{\n    return 1;\n}\n'),
        ('a.c: In function ‘f’:\na.c:3:15: error: expected ‘)’ before ‘{’ token\n    3 |     if (a == 1 {\n      |        ~      ^~\n      |               )\na.c:7:1: error: expected expression before ‘}’ token\n    7 | }\n      | ^\na.c:7:1: error: control reaches end of non-void function [-Werror=return-type]\n    7 | }\n      | ^\ncc1: all warnings being treated as errors\n', 'a.c', 'int f(int a)\n{\n    if (a == 1 {\n        return 1;\n    }\n    return 2;\n}\n', 'int f(int a)\n{\n    if (a == 1) {\n        return 1;\n    }\n    return 2;\n}\n'),
        ('a.c: In function ‘f’:\na.c:5:9: error: expected ‘:’ or ‘...’ before ‘return’\n    5 |         return 1;\n      |         ^~~~~~\na.c:5:16: error: statement will never be executed [-Werror=switch-unreachable]\n    5 |         return 1;\n      |                ^\ncc1: all warnings being treated as errors\n', 'a.c', 'int f(int a)\n{\n    switch (a) {\n    case 1\n        return 1;\n    }\n    return 2;\n}\n', 'int f(int a)\n{\n    switch (a) {\n    case 1:\n        return 1;\n    }\n    return 2;\n}\n'),
        ('a.cc:3:2: error: expected ‘;’ after class definition\n    3 | }\n      |  ^\n      |  ;\n', 'a.cc', 'class A {\n    int x;\n}\n\nint main() { return 0; }\n', 'class A {\n    int x;\n};\n\nint main() { return 0; }\n'),
        ('a.cc: In function ‘void f()’:\na.cc:1:17: error: ‘string’ is not a member of ‘std’\n    1 | void f() { std::string s; (void)s; }\n      |                 ^~~~~~\na.cc:1:1: note: ‘std::string’ is defined in header ‘<string>’; did you forget to ‘#include <string>’?\n  +++ |+#include <string>\n    1 | void f() { std::string s; (void)s; }\na.cc:1:33: error: ‘s’ was not declared in this scope\n    1 | void f() { std::string s; (void)s; }\n      |                                 ^\n', 'a.cc', 'void f() { std::string s; (void)s; }\n', '#include <string>\nvoid f() { std::string s; (void)s; }\n'),
        ('syntax error at a.pl line 3, near "my "\nGlobal symbol "$y" requires explicit package name (did you forget to declare "my $y"?) at a.pl line 3.\nGlobal symbol "$x" requires explicit package name (did you forget to declare "my $x"?) at a.pl line 4.\nGlobal symbol "$y" requires explicit package name (did you forget to declare "my $y"?) at a.pl line 4.\na.pl had compilation errors.\n', 'a.pl', 'use strict;\nmy $x = 1\nmy $y = 2;\nprint $x, $y;\n', 'use strict;\nmy $x = 1;\nmy $y = 2;\nprint $x, $y;\n'),
        ('Can\'t find string terminator "\'" anywhere before EOF at a.pl line 1.\n', 'a.pl', "my $x = 'abc;\nprint $x;\n", "my $x = 'abc';\nprint $x;\n"),
        ('Scalar value @a[0] better written as $a[0] at a.pl line 3.\n', 'a.pl', 'use strict;\nmy @a = (1);\nprint @a[0];\n', 'use strict;\nmy @a = (1);\nprint $a[0][0];\n'),
        ('a.sh: line 3: syntax error: unexpected end of file\n', 'a.sh', 'if true; then\n  echo 1\n', 'if true; then\n  echo 1\nfi\n'),
        ('a.sh: line 4: syntax error: unexpected end of file\n', 'a.sh', 'for x in 1 2; do\n  echo $x\ndnoe\n', 'for x in 1 2; do\n  echo $x\ndnoe\ndone\n'),
        ('a.sh: line 1: unexpected EOF while looking for matching `"\'\n', 'a.sh', 'echo "abc\necho def\n', 'echo "abc"\necho def\n'),
        ('a.js:1\nconst x = Math.max(1, 2;\n                      ^\n\nSyntaxError: missing ) after argument list\n    at wrapSafe (node:internal/modules/cjs/loader:1464:18)\n    at checkSyntax (node:internal/main/check_syntax:78:3)\n\nNode.js v20.20.2\n', 'a.js', 'const x = Math.max(1, 2;\n', 'const x = Math.max(1, 2);\n'),
        ('N802 Function name `fooBar` should be lowercase\n --> a.py:1:5\n  |\n1 | def fooBar():\n  |     ^^^^^^\n2 |     return 1\n  |\n\nFound 1 error.\n', 'a.py', 'def fooBar():\n    return 1\n', 'def foo_bar():\n    return 1\n'),
        ('A.java:3: error: unclosed string literal\n        return "abc;\n               ^\n1 error\n', 'A.java', 'class A {\n    String f() {\n        return "abc;\n    }\n}\n', 'class A {\n    String f() {\n        return "abc";\n    }\n}\n'),
        ('A.java:4: error: reached end of file while parsing\n    }\n     ^\n1 error\n', 'A.java', 'class A {\n    int f() {\n        return 1;\n    }\n', 'class A {\n    int f() {\n        return 1;\n    }\n}\n'),
        ('error[E0384]: cannot assign twice to immutable variable `x`\n --> a.rs:3:5\n  |\n2 |     let x = 1;\n  |         - first assignment to `x`\n3 |     x += 1;\n  |     ^^^^^^ cannot assign twice to immutable variable\n  |\nhelp: consider making this binding mutable\n  |\n2 |     let mut x = 1;\n  |         +++\n\nerror: aborting due to 1 previous error\n\nFor more information about this error, try `rustc --explain E0384`.\n', 'a.rs', 'pub fn f() -> i32 {\n    let x = 1;\n    x += 1;\n    x\n}\n', 'pub fn f() -> i32 {\n    let mut x = 1;\n    x += 1;\n    x\n}\n'),
        ('error[E0308]: mismatched types\n --> a.rs:3:7\n  |\n3 |     g(s)\n  |     - ^ expected `&str`, found `String`\n  |     |\n  |     arguments to this function are incorrect\n  |\nnote: function defined here\n --> a.rs:1:4\n  |\n1 | fn g(s: &str) -> usize { s.len() }\n  |    ^ -------\nhelp: consider borrowing here\n  |\n3 |     g(&s)\n  |       +\n\nerror: aborting due to 1 previous error\n\nFor more information about this error, try `rustc --explain E0308`.\n', 'a.rs', 'fn g(s: &str) -> usize { s.len() }\npub fn f(s: String) -> usize {\n    g(s)\n}\n', 'fn g(s: &str) -> usize { s.len() }\npub fn f(s: String) -> usize {\n    g(&s)\n}\n'),
        ("a.py:2:4: R1714: Consider merging these comparisons with 'in' by using 'x in ('red', 'blue')'. Use a set instead if elements are hashable. (consider-using-in)\n", 'a.py', "def f(x):\n    if x == 'red' or x == 'blue':\n        pass\n", "def f(x):\n    if x in ('red', 'blue'):\n        pass\n"),
        ("a.py:1:4: R1731: Consider using 'a = max(a, 0)' instead of unnecessary if block (consider-using-max-builtin)\n", 'a.py', 'if a < 0:\n    a = 0\nb = a\n', 'a = max(a, 0)\nb = a\n'),
        ("a.py:1:7: R1716: Simplify chained comparison between the operands: 0 < a < 10 (chained-comparison)\n", 'a.py', 'b = 0 < a and a < 10\n', 'b = 0 < a < 10\n'),
        ("a.py:2:5: SIM108 Use ternary operator 'c = a if flag else b' instead of if-else-block\n", 'a.py', 'def f(a, b, flag):\n    if flag:\n        c = a\n    else:\n        c = b\n    return c\n', 'def f(a, b, flag):\n    c = a if flag else b\n    return c\n'),
        ("a.py:1:48: R1701: Consider merging these isinstance calls to isinstance(a, (int, str)) (consider-merging-isinstance)\n", 'a.py', 'b = isinstance(a, int) or isinstance(a, str)\n', 'b = isinstance(a, (int, str))\n'),
        ("a.py:1:4: Use of weak MD5 hash for security. Consider usedforsecurity=False\n", 'a.py', 'x = md5(plan.encode()).hexdigest()\n', 'x = md5(plan.encode(), usedforsecurity=False).hexdigest()\n'),
        ('a.py:2: error: Argument 1 to "len" has incompatible type "Coroutine[Any, Any, list[int]]"; expected "Sized"  [arg-type]\na.py:2: note: Maybe you forgot to use "await"?\n', 'a.py', 'async def f(x):\n    return len(x.seats(1)) * 2\n', 'async def f(x):\n    return len(await x.seats(1)) * 2\n'),
        ("a.py:5: in f\nE  store.exc.ArgumentError: Textual expression 'select skaters from slot o...' should be declared as text('select skaters from slot o...')\n", 'a.py', 'from store import find\n\n\ndef f(x):\n    return x.run(\n        "select skaters from slot order by hour"\n    )\n', 'from store import find\nfrom store import text\n\n\ndef f(x):\n    return x.run(\n        text("select skaters from slot order by hour")\n    )\n'),
        ("a.py:6: in f\nE  store.exc.ArgumentError: should be declared as text('select skaters from slot o...')\n", 'a.py', '"""From\nthe old days."""\nfrom __future__ import annotations\n\nx = [\n    run("select skaters from slot order by hour").text,\n]\n', '"""From\nthe old days."""\nfrom __future__ import annotations\nfrom store import text\n\nx = [\n    run(text("select skaters from slot order by hour")).text,\n]\n'),
        ("a.py:4:8: W0707: Consider explicitly re-raising using 'except KeyError as exc' and 'raise Unknown(f\'no {a} here\') from exc' (raise-missing-from)\n", 'a.py', "try:\n    f()\nexcept KeyError:\n    raise Unknown(f'no {a} here')\n", "try:\n    f()\nexcept KeyError as exc:\n    raise Unknown(f'no {a} here') from exc\n"),
        ("a.py:4:5: B904 Within an `except` clause, raise exceptions with `raise ... from err` or `raise ... from None`\n", 'a.py', "try:\n    f()\nexcept (KeyError, OSError) as error:\n    raise Unknown\n", "try:\n    f()\nexcept (KeyError, OSError) as error:\n    raise Unknown from error\n"),
        ('a.py:1:10 - error: Unnecessary "# pyright: ignore" rule: "reportOperatorIssue" (reportUnnecessaryTypeIgnoreComment)\n', 'a.py', 'x = b - 1  # pyright: ignore[reportOperatorIssue]\n', 'x = b - 1\n'),
        ('a.py:1: error: Unused "type: ignore" comment  [unused-ignore]\n', 'a.py', 'x = b - 1  # type: ignore[operator]  # noqa: E501\n', 'x = b - 1  # noqa: E501\n'),
        ("a.js:1:20: Unused eslint-disable directive 'eslint-disable-line no-alert' (unused-directive)\n", 'a.js', 'x(1) // eslint-disable-line no-alert // why\n', 'x(1) // why\n'),
        (f"a.py:1: in f\nE  web.exc.RouteError: {'this is no field, ' * 30}you can set the parameter response_model=None.\n", 'a.py', '@app.get("/a")\ndef f(x): ...\n', '@app.get("/a", response_model=None)\ndef f(x): ...\n'),
        ("a.py:4: unused function '_mean' (60% confidence)\n", 'a.py', 'import os\n\n\ndef _mean(x):\n    return x\n\n\ndef f():\n    return os\n', 'import os\n\n\ndef f():\n    return os\n'),
    ],
)  # fmt: skip
def test_the_edit_that_is_meant_is_among_those_that_are_tried(
    said: str, path: str, text: str, after: str
) -> None:
    texts = {path: text, "b.py": ""}
    found = propose_small_edits(said, texts, texts.get, MOST)
    assert after in [one.texts.get(path) for one in found]


@pytest.mark.parametrize(
    ("said", "text", "after"),
    [
        ("a.py:1: error: no rule `namex`, perhaps `name`", "x(namex)\n", "x(name)\n"),
        ("a.py:1:3: `b` is wrong here, the word to write is `c`", "a b b\n", "a c b\n"),
        ("a.py:1: write 'new' instead of 'old'", "x(old)\n", "x(new)\n"),
        ("a.py, line 1: 'x' is gone, its place is taken by 'y'", "x\n", "y\n"),
    ],
)
def test_what_assumes_least_comes_first(said: str, text: str, after: str) -> None:
    texts = {"a.py": text}
    assert propose_small_edits(said, texts, texts.get, MOST)[0].texts == {"a.py": after}


def test_a_file_is_named_as_the_error_says() -> None:
    texts = {"src/Basket.java": "public class Baskets {}\n"}
    said = "src/Basket.java:1: error: class Baskets is public, should be declared in a file named Baskets.java"
    found = propose_small_edits(said, texts, texts.get, MOST)
    wanted = {"src/Basket.java": None, "src/Baskets.java": "public class Baskets {}\n"}
    assert wanted in [one.texts for one in found[:3]]


def test_a_file_that_only_has_to_be_there_is_made_beside_the_one_that_is_named() -> None:
    texts = {"shop/tax/rules.py": "RATE = 7\n"}
    said = "shop/tax/rules.py:1:1: INP001 {} is part of a package. Add an `__init__.py`."
    first, *_ = propose_small_edits(said.format("It"), texts, texts.get, MOST)
    assert first.texts == {"shop/tax/__init__.py": ""}
    texts["shop/tax/__init__.py"] = '"""Taxes."""\n'
    found = propose_small_edits(said.format("It"), texts, texts.get, MOST)
    assert not any(one.texts.get("shop/tax/__init__.py") == "" for one in found)


@pytest.mark.parametrize(
    ("row", "after"),
    [
        ('needs = ["yarl>=1.9"]', "needs = []"),
        ("needs = ['yarl', 'idna']", "needs = ['idna']"),
        ('needs = ["idna", "yarl[fast] < 2"]  # two', 'needs = ["idna"]  # two'),
        ('needs = ["idna", "yarl", "attrs"]', 'needs = ["idna", "attrs"]'),
        ('    "yarl~=1.9",', ""),
    ],
)
def test_an_entry_of_a_list_goes_with_its_quotes_and_its_comma(row: str, after: str) -> None:
    texts = {"conf.toml": f"[a]\n{row}\n"}
    said = "conf.toml:2: 'yarl' is a dependency that is never used"
    found = propose_small_edits(said, texts, texts.get, MOST)
    dropped = [one.texts["conf.toml"] for one in found if one.drops]
    assert dropped[0] == f"[a]\n{after}\n".replace("\n\n", "\n")


@pytest.mark.parametrize(
    ("said", "path", "row", "after", "there"),
    [
        ("WARNING - 'docs/intro2.md' links to 'intro.md', which was not found", "docs/intro2.md", "[x](intro.md)", "[x](introduction.md)", ["docs/introduction.md", "intro1.md"]),
        ("docs/a/b.md:1: dead link ../img/shp.png", "docs/a/b.md", "![x](../img/shp.png)", "![x](../img/shop.png)", ["docs/img/shop.png", "img/shap.png"]),
        ("python: can't open file '/work/tools/count.py': [Errno 2] No such file or directory", "ci/Makefile", "\tpython tools/count.py", "\tpython tools/count_all.py", ["tools/count_all.py", "count1.py"]),
    ],
)  # fmt: skip
def test_a_file_that_is_missing_is_the_one_most_like_it_in_its_folder(
    said: str, path: str, row: str, after: str, there: list[str]
) -> None:
    texts = {path: f"{row}\n", **dict.fromkeys(there, "")}
    first, *_ = propose_small_edits(said, texts, texts.get, MOST)
    assert first.texts == {path: f"{after}\n"}


def test_the_file_that_a_message_is_about_is_not_written_into_itself() -> None:
    texts = {"docs/about.md": "[x](story.md)\n"}
    said = "Doc file 'about.md' contains a link 'story.md', but the target is not found"
    found = propose_small_edits(said, texts, texts.get, MOST)
    assert found
    assert not any("about.md" in (one.texts.get("docs/about.md") or "") for one in found)


def test_a_link_to_a_file_that_is_there_stays() -> None:
    texts = {"docs/shop.md": "[x](shop.md)\n", "docs/shops.md": ""}
    said = "docs/shop.md:1: 'shop.md' has a heading that was not found"
    found = propose_small_edits(said, texts, texts.get, MOST)
    assert not any("shops.md" in (one.texts.get("docs/shop.md") or "") for one in found)


def test_marks_that_nothing_registers_are_registered_first() -> None:
    texts = {"tox.ini": "[pytest]\naddopts = -q\n", "tests/test_a.py": "assert 1\n"}
    said = "ERROR tests/test_a.py - Failed: 'nightly' not found in `markers` configuration option"
    first, *_ = propose_small_edits(said, texts, texts.get, MOST)
    assert first.texts == {"tox.ini": "[pytest]\nmarkers =\n    nightly\naddopts = -q\n"}


def test_what_removes_something_comes_last_and_is_marked() -> None:
    texts = {"a.py": "import os, sys\n"}
    found = propose_small_edits("a.py:1: unused import 'os'", texts, texts.get, MOST)
    assert found[-1].drops
    assert [one.drops for one in found] == sorted(one.drops for one in found)
    assert not any(one.drops for one in propose_small_edits("a.py:1: 'os' or 'osx'", texts, texts.get, MOST))  # fmt: skip


@pytest.mark.parametrize(
    ("said", "path", "text"),
    [
        ("tests/test_a.py:1: expected 1 but found 2", "tests/test_a.py", "assert f() == 1\n"),
        ("tests/test_a.py:1: unused import 'os'", "tests/test_a.py", "import os\n"),
        ("a.py:9: `x` is wrong, use `y`", "b.py", "x\n"),
        ("a.sh: error: 'biuldx' is none of the commands, see 'a.sh --help'", "ci/a.sh", "do biuldx\n"),
        ("go.sum:1: use 'b' instead of 'a'", "package-lock.json", "a\n"),
        ("a.py:1: use 'b' instead of 'a'", "a.py", f"a = '{'x' * 2000}'\n"),
    ],
)  # fmt: skip
def test_what_asks_for_something_else_suggests_nothing(said: str, path: str, text: str) -> None:
    texts = {path: text}
    assert propose_small_edits(said, texts, texts.get, MOST) == []


def test_a_file_that_only_the_command_names_may_be_meant() -> None:
    texts = {"conf.json": "{\n  'a': 1\n}\n", "b.json": "{}\n"}
    said = "Expecting property name enclosed in double quotes: line 2 column 3 (char 4)"
    assert propose_small_edits(said, texts, texts.get, MOST) == []
    found = propose_small_edits(said, texts, texts.get, MOST, "python -m json.tool conf.json")
    assert {"conf.json": '{\n  "a": 1\n}\n'} in [one.texts for one in found]


@pytest.mark.parametrize(
    ("before", "after", "is_step"),
    [
        ("a.c:1:2: error: x\na.c:2:2: error: y", "a.c:2:2: error: y", True),
        ("a.c:1:2: error: x\na.c:2:2: error: y", "a.c:2:2: error: z", False),
        ('File "a.py", line 1\nSyntaxError: x', 'File "a.py", line 4\nSyntaxError: x', True),
        ('File "a.py", line 1\nSyntaxError: x', 'File "a.py", line 1\nSyntaxError: x', False),
        ("a.c:1:2: error: x", "a.c:1:2: error: y\na.c:1:3: error: z", False),
        ("a.c:1:2: error: x", "", False),
    ],
)
def test_an_edit_is_kept_where_its_error_is_gone_and_no_other_came(
    before: str, after: str, *, is_step: bool
) -> None:
    assert _is_a_step(before, after) == is_step


def test_a_text_that_many_begin_like_is_wrapped_at_the_nearest_alone() -> None:
    said = "a.py:3000: in f\nE  a.b.AError: should be declared as text('select 1 from...')\n"
    texts = {"a.py": "x = [\n" + "    'select 1 from a',\n" * 6000 + "]\n"}
    found = propose_small_edits(said, texts, texts.get, MOST)
    wrapped = [one for one in found if one.words == "wrote `text(...)` around it"]
    assert 1 <= len(wrapped) <= 2
    texts = {"a.py": "text('select 1 from a')\n"}
    found = propose_small_edits(said.replace("3000", "1"), texts, texts.get, MOST)
    assert "text(text(" not in str(found)


def test_a_long_output_ends_in_time() -> None:
    line = "a.py:{}: expected '(' before `x{}` but found \"y\"; use [a, b, 'c'] instead, or f(x)\n"
    said = "".join(line.format(n, n) for n in range(1, 3000))
    texts = {"a.py": "x1 = y(a, b) # c\n" * 3000, "b.json": "{" * 5000}
    assert len(propose_small_edits(said, texts, texts.get, MOST)) == MOST


@pytest.mark.parametrize(
    "said",
    [
        "    assert f() == 1\nE   assert 2 == 1\na.py:1: AssertionError",
        "E   AssertionError",
        "thread 'a' panicked at src/lib.rs:5:9:\nassertion `left == right` failed\n  left: 0\n right: 1",
        "thread 'a' panicked at 'assertion failed: `(left == right)`', src/lib.rs:5:9",
        "--- FAIL: TestSum (0.00s)\n    sum_test.go:8: got 1, want 2",
        "1) sum(SumTest)\njava.lang.AssertionError: expected:<2> but was:<1>",
        "org.junit.ComparisonFailure: expected:<[a]> but was:<[b]>",
    ],
)
def test_no_edit_is_tried_where_a_test_asks_for_another_value(said: str) -> None:
    case = MagicMock(output=said, setup_failed=False)
    assert list(find_working_edits(case, MagicMock())) == []
    case.open_box.assert_not_called()
