"""Runs in the box, under any Python since 3.6: asks the package indexes, as the machine configures them.

Only certain answers become rows: a network that fails, an index that refuses and a missing client give no row.
"""

import json
import re
import subprocess
import sys

asked = json.loads(sys.argv[1])
found = {"pypi": {}, "npm": {}}


def session_of_pip():
    from pip._internal.commands.index import IndexCommand

    command = IndexCommand("index", "")
    options, _ = command.parse_args(["versions", "x", "--retries", "1", "--timeout", "15"])
    urls = [options.index_url, *options.extra_index_urls]
    return command._build_session(options), [] if options.no_index else [u for u in urls if u]


def normalise(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def version_of(file, name):
    stem = re.sub(r"\.(?:tar\.gz|tar\.bz2|zip|whl|egg|tgz|tar\.xz|tar\.Z|exe|msi|rpm)$", "", file)
    if file.endswith((".whl", ".egg")):
        return stem.split("-")[1] if "-" in stem else ""
    for at in range(len(stem)):
        if stem[at] == "-" and normalise(stem[:at]) == name:
            return stem[at + 1 :]
    return ""


def files_of(reply):
    if "json" in reply.headers.get("Content-Type", ""):
        return [(f["filename"], f.get("yanked", False)) for f in reply.json()["files"]]
    rows = re.findall(r"<a\s([^>]*)>\s*([^<]*?)\s*</a>", reply.text)
    out = []
    for attributes, name in rows:
        reason = re.search(r"data-yanked(?:=\"([^\"]*)\")?", attributes)
        out.append((name, (reason.group(1) or True) if reason else False))
    return out


def ask_pip():
    session, urls = session_of_pip()
    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.2"
    for name in asked["pypi"]:
        versions, missing, unsure = {}, 0, False
        for url in urls:
            place = (
                url.rstrip("/")
                + "/"
                + name
                + "/"
                + ("index.html" if url.startswith("file:") else "")
            )
            reply = session.get(place, headers={"Accept": accept}, timeout=20)
            if reply.status_code == 404:
                missing += 1
                continue
            if reply.status_code != 200:
                unsure = True
                continue
            for file, yanked in files_of(reply):
                version = version_of(file, name)
                if not version:
                    continue
                reason = (
                    "" if not yanked else yanked if isinstance(yanked, str) else "no reason given"
                )
                known = versions.get(version)
                if known is None or not reason or (known and isinstance(yanked, str)):
                    versions[version] = reason
        if versions:
            found["pypi"][name] = {"there": True, "versions": versions}
        elif missing and missing == len(urls) and not unsure:
            found["pypi"][name] = {"there": False}


def ask_npm():
    for name, spec in asked["npm"]:
        full = name + "@" + spec if spec else name
        done = subprocess.run(
            ["npm", "view", full, "name", "version", "deprecated", "--json", "--fetch-retries=1"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=60,
        )
        data = json.loads(done.stdout.decode("utf-8", "replace") or "[]")
        if isinstance(data, dict) and "error" in data:
            error = data["error"] or {}
            if error.get("code") == "E404":
                words = str(error.get("summary", "")) + str(error.get("detail", ""))
                found["npm"].setdefault(name, {"there": "No match" in words, "versions": {}})
            continue
        rows = data if isinstance(data, list) else [data]
        if not rows:
            continue
        held = found["npm"].setdefault(name, {"there": True, "versions": {}})
        held["there"] = True
        for row in rows:
            if isinstance(row, dict) and "version" in row:
                held["versions"][row["version"]] = str(row.get("deprecated") or "")


for kind, ask in (("pypi", ask_pip), ("npm", ask_npm)):
    if asked[kind]:
        try:
            ask()
        except Exception as error:
            found.setdefault("problems", []).append(kind + ": " + str(error)[:200])
with open(sys.argv[2], "w") as file:
    json.dump(found, file)
