"""However an install is spelt, the dependency guard understands it or refuses it: none passes unread."""

from __future__ import annotations

import pytest

from regreen.packages.setup_guard import InstallPolicy, SourceTree, find_refusals

BASE = {
    "requirements.txt": "attrs\n",
    "ci/tools.txt": "flask\n",
    "ci/run.sh": "#!/bin/sh\npytest\n",
}


def refused(setup: str) -> list[str]:
    """What is refused of a setup on a tree that changes nothing."""
    content = {path: text.encode() for path, text in BASE.items()}
    tree = SourceTree(dict.fromkeys(content, "1"), content.get)
    return [one.what for one in find_refusals(setup, (), tree, tree, InstallPolicy())]


# The name stands in each; what is refused must contain it, or the whole command where it cannot be told.
SPELLINGS = """\
pip install zz-evil
pip3 install zz-evil
pip3.12 install zz-evil
/usr/bin/pip3 install zz-evil
./.venv/bin/pip install zz-evil
$VENV/bin/pip install zz-evil
"$VENV/bin/pip3.11" install zz-evil
pip --quiet --proxy http://p:1 install zz-evil
pip install -q --no-deps --target /tmp/x zz-evil
python -m pip install zz-evil
python3 -m pip install zz-evil
python3.13 -u -m pip install zz-evil
python -I -m pip install zz-evil
python -Im pip install zz-evil
python -mpip install zz-evil
python -W ignore -X utf8 -m pip install zz-evil
pypy3 -m pip install zz-evil
py -3 -m pip install zz-evil
"$PYTHON" -m pip install zz-evil
$(which pip) install zz-evil
`which pip3` install zz-evil
$(command -v pip) install zz-evil
$(which python3) -m pip install zz-evil
$PIP install zz-evil
${PIP:-pip} install zz-evil
uv pip install zz-evil
uv --quiet pip install zz-evil
python -m uv pip install zz-evil
uv add zz-evil
uv tool install zz-evil
uv tool run zz-evil
uvx zz-evil
uv run --with zz-evil pytest
pipx install zz-evil
pipx run zz-evil
poetry add zz-evil
pdm add zz-evil
pipenv install zz-evil
easy_install zz-evil
npm install zz-evil-npm
npm i -D zz-evil-npm
npm exec zz-evil-npm
npx zz-evil-npm
npx --yes zz-evil-npm
yarn add zz-evil-npm
pnpm add zz-evil-npm
pnpm dlx zz-evil-npm
bunx zz-evil-npm
sudo pip install zz-evil
sudo -H pip install zz-evil
sudo -E -u builder pip install zz-evil
sudo -E env A=1 pip install zz-evil
doas pip install zz-evil
env pip install zz-evil
env -u A -i B=1 pip install zz-evil
env -S "pip install zz-evil"
A=1 B='x y' pip install zz-evil
time pip install zz-evil
time -p pip install zz-evil
timeout 60 pip install zz-evil
timeout -k 5 60 pip install zz-evil
nohup pip install zz-evil &
nice -n 5 pip install zz-evil
nice pip install zz-evil
ionice -c 3 pip install zz-evil
stdbuf -oL pip install zz-evil
setsid pip install zz-evil
command pip install zz-evil
exec pip install zz-evil
builtin command pip install zz-evil
xvfb-run -a pip install zz-evil
retry 3 pip install zz-evil
with-proxy --host x -- pip install zz-evil
docker exec box pip install zz-evil
conda run -n dev pip install zz-evil
echo zz-evil | xargs pip install
echo zz-evil | xargs -n1 pip install
printf 'zz-evil\\n' | xargs -I{} pip install {}
xargs -a names.txt pip install
pip install -r /dev/stdin < names.txt
pip install -r <(cat names.txt)
xargs pip install < names.txt
cat names.txt | xargs pip install
curl -s https://names.example/list | xargs pip install
find . -name x -exec pip install zz-evil ;
parallel pip install ::: zz-evil
bash -c "pip install zz-evil"
sh -ec 'pip install zz-evil'
bash -lc "pip install zz-evil"
bash -e -o pipefail -c "pip install zz-evil"
su builder -c "pip install zz-evil"
eval "pip install zz-evil"
eval pip install zz-evil
CMD="pip install zz-evil"; eval "$CMD"
CMD="pip install zz-evil"; $CMD
P=pip; $P install zz-evil
NAME=zz-evil; pip install $NAME
NAME=zz-evil; pip install "${NAME}"
eval "$(echo cGlwIGluc3RhbGwgeA== | base64 -d)"
$(echo cGlwIGluc3RhbGwgeA== | base64 -d)
echo "pip install zz-evil" | sh
echo cGlwIGluc3RhbGwgeA== | base64 -d | bash
echo "pip install zz-evil" > /tmp/x.sh | sh
bash <<< "pip install zz-evil"
bash <<EOF\\npip install zz-evil\\nEOF
docker exec -i box sh <<EOF\\npip install zz-evil\\nEOF
cat <<'EOF' | sh\\npip install zz-evil\\nEOF
cat > r.txt <<EOF\\nzz-evil\\nEOF\\npip install -r r.txt
echo zz-evil > r.txt && pip install -r r.txt
echo zz-evil >> requirements.txt; pip install -r requirements.txt
printf "attrs\\nzz-evil\\n" | tee r.txt; pip install -r r.txt
cd ci; echo zz-evil > r.txt; pip install -r r.txt
sed s/attrs/zz-evil/ requirements.txt > r.txt; pip install -r r.txt
python gen.py > r.txt; pip install -r r.txt
pip install -r <(echo zz-evil)
python -c "import pip; pip.main(['install', 'zz-evil'])"
python - <<EOF\\nimport subprocess\\nsubprocess.run(['pip', 'install', 'zz-evil'])\\nEOF
f() { pip install "$@"; }; f zz-evil
f() { pip install zz-evil; }; f
run() { "$@"; }; run pip install zz-evil
function f { pip install $1; }; f zz-evil
alias p="pip install"; p zz-evil
if true; then pip install zz-evil; fi
for n in zz-evil; do pip install $n; done
while read n; do pip install "$n"; done < names.txt
case $x in a) pip install zz-evil;; esac
true && pip install zz-evil || false
(cd x && pip install zz-evil)
{ pip install zz-evil; } > log 2>&1
! pip install zz-evil
X=$(pip install zz-evil)
echo $(pip install zz-evil)
echo "`pip install zz-evil`"
diff <(pip install zz-evil) x
[[ -f x ]] && pip install zz-evil
pip install attrs 2>/dev/null zz-evil
>/dev/null pip install zz-evil
pip \\\\\\n  install \\\\\\n  zz-evil
p\\\\ip in'stall' zz-e"vil"
$'\\x70ip' install zz-evil
{pip,install,zz-evil}
pip $VERB zz-evil
pip install $(echo zz-evil)
pip install $(cat /tmp/names)
pip install `curl -s https://names.example/list`
pip install -t $(pwd) zz-evil
pip install $(sed s/flask/zz-evil/ ci/tools.txt)
trap "pip install zz-evil" EXIT
if pip install 'zz-evil; then
"""


@pytest.mark.parametrize("line", SPELLINGS.splitlines())
def test_no_spelling_of_an_install_passes(line: str) -> None:
    setup = line.replace("\\n", "\n").replace("\\\\", "\\")
    assert refused(setup), setup


@pytest.mark.parametrize(
    "setup",
    [
        "sudo -H pip install attrs && timeout 60 python -u -m pip install -r requirements.txt",
        "xargs -n1 pip install < requirements.txt",
        "grep -v '#' ci/tools.txt | xargs pip install",
        "uv export > all.txt && pip install -r all.txt",
        "grep -v torch requirements.txt > some.txt; pip install -r some.txt",
        'eval "$(ssh-agent -s)"; eval "$(pyenv init -)"',
        "echo 'pip install zz-evil'; git commit -m 'pip install zz-evil'",
        "sudo apt-get install -y python3-pip npm pipx",
        "command -v pip; which pip3; pip --version",
        "bash ci/run.sh; sh -c 'pytest -q'; cat ci/run.sh | bash",
        "for n in a b; do echo $n; done; case $x in a) pytest;; esac",
        "cat > notes.txt <<EOF\npip install zz-evil\nEOF",
        "python -c 'import sys; print(sys.version)'",
        "pip install ./dist/*.whl",
        "PIP=pip; $PIP install attrs",
        "$(npm bin)/eslint .",
        "pip install $(cat requirements.txt) $(grep -v x ci/tools.txt) $(ls dist/*.whl)",
        "pip install -t $(pwd) -r requirements.txt",
        './notify "$(pip freeze)" "with $(pip --version)"',
    ],
)
def test_usual_setups_pass(setup: str) -> None:
    assert refused(setup) == []
