"""Patterns of faults in Go, Rust and Java, each beside code that only looks like it; safeguards that a change takes out."""

from __future__ import annotations

from pathlib import Path

import pytest

from regreen.domain.models import Review
from regreen.reviewers.analyzers.compiled.code_patterns import (
    CodePatterns,
    find_patterns,
    load_patterns,
)
from regreen.reviewers.analyzers.compiled.weakened_code import WeakenedCode, load_safeguards
from regreen.reviewers.pipeline import ReviewJob, review_change
from tests.unit.repairs import Repository

ENDINGS = {"go": "go", "rust": "rs", "java": "java"}
FRAMES = {
    "go": 'package a\n\nimport "math/rand"\n\nfunc f(w http.ResponseWriter, r *http.Request) error {{\n{}\n}}\n',
    "rust": "fn f(list: &[u8], len: usize) -> Result<u8, E> {{\n{}\n}}\n",
    "java": "class A {{ String f(HttpServletRequest request, List<String> list) {{\n{}\n}} }}\n",
}
CASES = [
    ("loop-past-end", "go", "for i := 0; i <= len(a); i++ { use(a[i]) }", "for i := 0; i <= len(a); i++ { use(a[:i]) }"),
    ("loop-past-end", "rust", "for i in 0..=list.len() { use(list[i]); }", "for i in 0..=list.len() { use(&list[..i]); }"),
    ("loop-past-end", "java", "for (int i = 0; i <= list.size(); i++) { use(list.get(i)); }", "for (int i = 0; i <= list.size(); i++) { use(list.subList(0, i)); }"),
    ("past-end", "go", "return a[len(a)]", "return a[len(a)-1]"),
    ("same-operands", "go", "return a.x == a.x", "return next() == next()"),
    ("same-operands", "java", "return a.x && a.x;", "return a.x && b.x;"),
    ("never-both", "rust", "if len < 1 && len > 9 { g(); }", "if len < 1 || len > 9 { g(); }"),
    ("never-both", "java", 'if (x != 1 || x != 2) { g(); }', 'if (x != 1 && x != 2) { g(); }'),
    ("repeated-condition", "go", "if a == 1 { b() } else if a == 1 { c() }", "if a == 1 { b() } else if a == 2 { c() }"),
    ("crossed-fields", "rust", "P { low: high, high: low }", "P { low: a.low, high: a.high }"),
    ("nil-used", "go", "if p == nil && p.x { return e }", "if p != nil && p.x { return e }"),
    ("nil-used", "java", "if (p != null || p.isEmpty()) { g(); }", "if (p == null || p.isEmpty()) { g(); }"),
    ("unlocked-return", "go", "m.Lock()\nif x { return e }\nm.Unlock()\nreturn nil", "m.Lock()\nif x { m.Unlock(); return e }\nm.Unlock()\nreturn nil"),
    ("deferred-in-loop", "go", "for _, n := range a { f := g(n)\ndefer f.Close() }", "for _, n := range a { func() { f := g(n)\ndefer f.Close() }() }"),
    ("deferred-before-check", "go", "f, err := os.Open(n)\ndefer f.Close()\nif err != nil { return err }", "f, err := os.Open(n)\nif err != nil { return err }\ndefer f.Close()"),
    ("answered-and-continued", "go", 'if bad { http.Error(w, "x", 400) }\nsave(r)', 'if bad { http.Error(w, "x", 400); return nil }\nsave(r)'),
    ("body-never-closed", "go", "resp, err := http.Get(u)\nuse(err)\nreturn read(resp.Body)", "resp, err := http.Get(u)\nuse(err)\ndefer resp.Body.Close()\nread(resp.Body)"),
    ("sleep-without-unit", "go", "time.Sleep(500)", "time.Sleep(500 * time.Millisecond)"),
    ("swallowed", "java", "try { g(); } catch (IOException e) { }", "try { g(); } catch (IOException e) { /* there is none */ }"),
    ("narrowed-named-length", "rust", "let a = len as u16;", "let a = len as u64;"),
    ("sql", "go", 'db.Query("SELECT a FROM t WHERE b = \'" + b + "\'")', 'db.Query("SELECT a FROM t WHERE b = ?", b)'),
    ("sql", "rust", 'q(&format!("DELETE FROM t WHERE b = \'{}\'", b));', 'q(&format!("DELETE FROM {} WHERE b = ?", table));'),
    ("sql", "java", 'q("SELECT a FROM t WHERE b = \'" + b + "\'");', 'q("SELECT a FROM t WHERE b = " + MAX_ROWS);'),
    ("shell", "rust", 'Command::new("sh").arg("-c").arg(format!("cat {}", n)).output()', 'Command::new("cat").arg(n).output()'),
    ("shell-line", "go", 'line := "tar cf a.tar " + n\nexec.Command("sh", "-c", line).Run()', 'line := "tar cf a.tar ."\nexec.Command("sh", "-c", line).Run()'),
    ("shell-line", "rust", 'let line = format!("tar cf a.tar {}", n); Command::new("sh").arg("-c").arg(&line).status()', 'let line = String::from("tar cf ") + "a.tar"; Command::new("sh").arg("-c").arg(&line).status()'),
    ("shell-line", "rust", 'let line = "tar cf ".to_string() + n; Command::new("/bin/sh").args(["-c", &line]).status()', 'let line = format!("tar cf {}", MAX_ROWS); Command::new("/bin/sh").args(["-c", &line]).status()'),
    ("shell-line", "java", 'String line = "tar cf a.tar " + n; r.exec(new String[] {"sh", "-c", line});', 'String line = n; r.exec(new String[] {"tar", "cf", line});'),
    ("shell-line", "go", 'line := fmt.Sprintf("rm -rf /data/%s", prefix)\nexec.Command("sh", "-c", line).Run()', 'line := fmt.Sprintf("sleep %d", seconds)\nexec.Command("sh", "-c", line).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", "rm -rf /data/"+account).Run()', 'exec.Command("sh", "-c", fmt.Sprintf("sleep %d", seconds)).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", fmt.Sprintf("%d", n)+account).Run()', 'var days, seconds int\nexec.Command("sh", "-c", fmt.Sprintf("sleep %v", seconds)).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", fmt.Sprintf("cat %s", list)).Run()', 'var days int\nexec.Command("sh", "-c", "sleep "+strconv.Itoa(days)).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", fmt.Sprintf("kill -%d \\"%s\\"", sig, name)).Run()', 'exec.Command("sh", "-c", fmt.Sprintf("kill -%d \\"%d\\"", sig, pid)).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", fmt.Sprintf(`kill "%d" %s`, sig, name)).Run()', 'exec.Command("sh", "-c", fmt.Sprintf(`kill "%d" %d`, sig, pid)).Run()'),
    ("shell", "go", 'exec.Command("sh", "-c", fmt.Sprintf("cut -c %d "+name, n)).Run()', 'exec.Command("sh", "-c", fmt.Sprintf("fill %[2]d%% of %*[1]d", sig, pid)).Run()'),
    ("shell", "go", '// an int account\nlog.Print("account int", T{account: u8})\nexec.Command("sh", "-c", "rm "+account).Run()', 'var account int // of "x"\nexec.Command("sh", "-c", "rm "+strconv.Itoa(account)).Run()'),
    ("shell-line", "go", 'line := fmt.Sprintf(`cat %s`, n)\nexec.Command("sh", "-c", line).Run()', 'line := `cat a`\nexec.Command("sh", "-c", line).Run()'),
    ("shell", "rust", 'let n: String = g(); Command::new("sh").arg("-c").arg(format!("cat {n}")).output()', 'Command::new("sh").arg("-c").arg(&format!("sleep {} {len}", len)).output()'),
    ("shell-line", "java", 'String line = String.format("cat %s", n); r.exec(new String[] {"sh", "-c", line});', 'int n = 5; String line = "sleep " + n; r.exec(new String[] {"sh", "-c", line});'),
    ("split-command", "java", 'String line = "rm -rf /data/" + account; Runtime.getRuntime().exec(line);', 'long n = 5; Runtime.getRuntime().exec("sleep " + n);'),
    ("split-command", "java", 'Runtime.getRuntime().exec("rm -rf /data/" + prefix);', 'Runtime.getRuntime().exec(command);'),
    ("request-path", "go", 'name := r.FormValue("n")\nos.Open("/srv/" + name)', 'name := filepath.Base(r.FormValue("n"))\nos.Open("/srv/" + name)'),
    ("request-path", "java", 'String n = request.getParameter("n"); new File("/srv", n);', 'String n = request.getParameter("n"); if (!n.matches("[a-z]+")) { return null; } new File("/srv", n);'),
    ("request-command", "go", 'exec.Command("tar", "czf", r.FormValue("n")).Run()', 'exec.Command("tar", "czf", "--", r.FormValue("n")).Run()'),
    ("request-command", "go", 'exec.Command("sh", "-c", r.FormValue("n"), "--").Run()', 'exec.CommandContext(ctx, "git", "log", "--", r.FormValue("n")).Run()'),
    ("request-command", "go", 'exec.Command(r.FormValue("p"), "--", "x").Run()', 'exec.Command("git", "log", "--", r.FormValue("n")).Run()'),
    ("request-command", "java", 'new ProcessBuilder("tar", "x", request.getParameter("n")).start();', 'new ProcessBuilder("tar", "x", "--", request.getParameter("n")).start();'),
    ("weak-token", "go", "token := rand.Intn(9)", "jitter := rand.Intn(9)"),
    ("weak-hash", "java", 'byte[] passwordHash = MessageDigest.getInstance("MD5").digest(a);', 'byte[] checksum = MessageDigest.getInstance("MD5").digest(a);'),
    ("weak-hash", "java", 'byte[] passwordHash = java.security.MessageDigest.getInstance("MD5").digest(a);', 'byte[] checksum = java.security.MessageDigest.getInstance("MD5").digest(a);'),
    ("weak-token", "java", 'long token = new java.util.Random().nextLong();', 'long token = new java.security.SecureRandom().nextLong();'),
    ("no-certificate-check", "go", "c := tls.Config{InsecureSkipVerify: true}", "c := tls.Config{InsecureSkipVerify: false}"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "language", "wrong", "right"), CASES)
def test_a_pattern_is_found_and_its_twin_is_not(
    rule: str, language: str, wrong: str, right: str
) -> None:
    security = load_patterns().rules[rule].security

    def find(code: str) -> set[str]:
        text = FRAMES[language].format(code)
        return {h.rule for h in find_patterns(f"a.{ENDINGS[language]}", text, security=security)}

    assert rule in find(wrong)
    assert find(right) == set()


def test_every_query_compiles() -> None:
    for rule in load_patterns().rules.values():
        for language in rule.queries:
            path = f"a.{ENDINGS[language]}"
            assert [*find_patterns(path, "", security=rule.security)] == []
    assert load_safeguards()


def review(
    tmp_path: Path, name: str, before: str, after: str, reviewer: CodePatterns | WeakenedCode
) -> Review:
    tmp_path.mkdir(exist_ok=True)
    repository = Repository(tmp_path / "repo")
    base = repository.commit("start", {name: before})
    head = repository.commit("change", {name: after})
    job = ReviewJob(base=base, head=head)
    return review_change(job, git=repository.open(), sandbox=None, model=None, reviewers=(("correctness", reviewer),))  # fmt: skip


FILLER = "\ta := 1\n\tb := 2\n\tc := a + b\n\tuse(c)\n"
RUST_CHECK = "    if {}.kind != KIND {{\n        return Err(E::Kind);\n    }}\n"
JAVA_CHECK = "        if (a == c) {\n            throw new IllegalStateException();\n        }\n"
WEAKENED = [
    ("check-dropped", "a.go", f"package a\n\nfunc F(p *T) int {{\n\tif p == nil {{\n\t\treturn 0\n\t}}\n{FILLER}\treturn p.x\n}}\n", "\tif p == nil {\n\t\treturn 0\n\t}\n", ""),
    ("lock-dropped", "a.go", f"package a\n\nfunc F(p *T) int {{\n\tp.mu.Lock()\n{FILLER}\treturn p.x\n}}\n", "\tp.mu.Lock()\n", ""),
    ("unlock-dropped", "a.go", f"package a\n\nfunc F(p *T) int {{\n\tp.mu.Lock()\n\tdefer p.mu.Unlock()\n{FILLER}\treturn p.x\n}}\n", "\tdefer p.mu.Unlock()\n", ""),
    ("lock-dropped", "A.java", "class A {\n    synchronized int f() {\n        int a = 1;\n        int b = a + this.c;\n        this.c = b;\n        return b;\n    }\n}\n", "synchronized int", "int"),
    ("arguments-reordered", "a.go", f"package a\n\nfunc F(p *T) int {{\n{FILLER}\treturn copyTo(dst, src)\n}}\n", "(dst, src)", "(src, dst)"),
    ("error-unwrapped", "a.rs", "fn f(a: &str) -> Result<u8, E> {\n    let b = a.trim();\n    let n = b.parse()?;\n    Ok(n)\n}\n", "parse()?", "parse().unwrap()"),
    ("checked-arithmetic-dropped", "a.rs", "fn f(a: u8) -> Option<u8> {\n    let b = 2;\n    let n = a.checked_add(b)?;\n    Some(n)\n}\n", "a.checked_add(b)?", "a + b"),
    ("error-swallowed", "A.java", "class A {\n    int f() {\n        int a = 0;\n        try {\n            a = g();\n        } catch (IOException e) {\n            throw new E(e);\n        }\n        return a;\n    }\n}\n", "throw new E(e);", "a = 1;"),
    ("check-dropped", "a.go", f"package a\n\nfunc F(w W, r *R) int {{\n\tif !isAllowed(r) {{\n\t\treturn answer(w)\n\t}}\n{FILLER}\treturn p.x\n}}\n", "\tif !isAllowed(r) {\n\t\treturn answer(w)\n\t}\n", ""),
    ("check-dropped", "a.go", f"package a\n\nfunc F(w W, r *R) int {{\n\tif r.n > 9 {{\n\t\treturn deny(w)\n\t}}\n{FILLER}\treturn p.x\n}}\n", "\tif r.n > 9 {\n\t\treturn deny(w)\n\t}\n", ""),
    ("check-dropped", "a.rs", f"fn f(a: &T, b: &T) -> Result<u8, E> {{\n{RUST_CHECK.format('a')}{RUST_CHECK.format('b')}    Ok(a.x + b.x)\n}}\n", RUST_CHECK.format("b"), ""),
    ("check-dropped", "A.java", f"class A {{\n    int f(int a) {{\n{JAVA_CHECK}        int b = a + 1;\n        return b * c;\n    }}\n}}\n", JAVA_CHECK, ""),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "name", "text", "old", "new"), WEAKENED)
def test_a_safeguard_that_goes_is_named(  # noqa: PLR0917
    tmp_path: Path, rule: str, name: str, text: str, old: str, new: str
) -> None:
    (finding,) = review(tmp_path, name, text, text.replace(old, new), WeakenedCode()).findings
    assert finding.rule == f"weakened/{rule}"


def test_another_way_to_a_result_is_no_refusal(tmp_path: Path) -> None:
    text = next(w[2] for w in WEAKENED if w[1] == "A.java" and w[0] == "check-dropped")
    other = text.replace("throw new IllegalStateException();", "return a;")
    changed = text.replace(JAVA_CHECK, "")
    assert review(tmp_path, "A.java", other, changed, WeakenedCode()).findings == ()


def test_a_check_that_moves_elsewhere_is_not_missed(tmp_path: Path) -> None:
    text = WEAKENED[0][2]
    moved = text.replace("\tif p == nil {\n\t\treturn 0\n\t}\n", "")
    moved += "\nfunc G(p *T) int {\n\tif p == nil {\n\t\treturn 0\n\t}\n\treturn F(p)\n}\n"
    assert review(tmp_path, "a.go", text, moved, WeakenedCode()).findings == ()


def test_a_lock_that_is_gone_with_its_declaration_is_not_missed(tmp_path: Path) -> None:
    text = WEAKENED[1][2] + "\ntype T struct {\n\tmu sync.Mutex\n\tx  int\n}\n"
    unlocked = text.replace("\tp.mu.Lock()\n", "")
    assert review(tmp_path / "a", "a.go", text, unlocked, WeakenedCode()).findings
    without = unlocked.replace("\tmu sync.Mutex\n", "")
    assert review(tmp_path / "b", "a.go", text, without, WeakenedCode()).findings == ()


@pytest.mark.parametrize(
    ("was", "now", "count"),
    [
        ("&p.n", "p.n.Load()", 0),
        ("&p.n[i]", "p.n[i].Load()", 0),
        ("&p.n", "p.n", 1),
        ("&p.n", "p.n + cache.Load(p)", 1),
        ("&p.n) + atomic.LoadInt64(&p.m", "p.n.Load() + p.m.Load()", 0),
        ("&p.n) + atomic.LoadInt64(&p.m", "p.n.Load() + p.m", 1),
    ],
)
def test_a_value_whose_type_became_atomic_lost_nothing(
    tmp_path: Path, was: str, now: str, count: int
) -> None:
    text = f"package a\n\nfunc F(p *T) int64 {{\n{FILLER}\treturn atomic.LoadInt64({was})\n}}\n"
    changed = text.replace(f"atomic.LoadInt64({was})", now)
    found = review(tmp_path, "a.go", text, changed, WeakenedCode()).findings
    assert [f.rule for f in found] == ["weakened/volatile-dropped"] * count


@pytest.mark.parametrize(("helper", "count"), [("p.mu.Lock()", 0), ("log(p)", 1)])
def test_a_safeguard_that_a_called_function_has_is_not_gone(
    tmp_path: Path, helper: str, count: int
) -> None:
    text = WEAKENED[1][2] + f"\nfunc begin(p *T) {{\n\t{helper}\n}}\n"
    moved = text.replace("p.mu.Lock()", "begin(p)", 1)
    assert len(review(tmp_path, "a.go", text, moved, WeakenedCode()).findings) == count


@pytest.mark.parametrize(("parameters", "count"), [("src, dst []byte", 0), ("dst, src []byte", 1)])
def test_arguments_in_the_order_of_their_parameters_are_right(
    tmp_path: Path, parameters: str, count: int
) -> None:
    text = next(w[2] for w in WEAKENED if w[0] == "arguments-reordered")
    text += f"\nfunc copyTo({parameters}) int {{\n\treturn 0\n}}\n"
    changed = text.replace("(dst, src)\n}", "(src, dst)\n}")
    assert changed != text
    assert len(review(tmp_path, "a.go", text, changed, WeakenedCode()).findings) == count


def test_a_shorter_way_to_a_result_is_no_check(tmp_path: Path) -> None:
    short = "\tif cap(p) > len(p) {\n\t\treturn append(p, 1)\n\t}\n"
    text = f"package a\n\nfunc F(p []int) []int {{\n{short}{FILLER}\treturn p\n}}\n"
    changed = text.replace(short, "")
    assert review(tmp_path, "a.go", text, changed, WeakenedCode()).findings == ()


def test_what_the_base_had_is_not_said_again(tmp_path: Path) -> None:
    text = FRAMES["go"].format("time.Sleep(500)")
    changed = text.replace("package a\n", "package a\n\nvar x = 1\n")
    assert review(tmp_path, "a.go", text, changed, CodePatterns(security=False)).findings == ()
