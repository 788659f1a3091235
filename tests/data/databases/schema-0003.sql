BEGIN TRANSACTION;
CREATE TABLE actions (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	job VARCHAR(400) NOT NULL, 
	repo VARCHAR(255) NOT NULL, 
	number INTEGER, 
	asked_by VARCHAR(128) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	detail TEXT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "actions" VALUES(1,1772442000.0,'review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','acme/shop',1,'alice','review','2 findings at 5d022f5a054f, $0.000');
INSERT INTO "actions" VALUES(2,1772442000.0,'comment/acme/shop/1/4794ccb3-7344-435a-a0f3-16f0bbd1e5e3','acme/shop',1,'alice','/dismiss','5e5c6407 test data');
INSERT INTO "actions" VALUES(3,1772442000.0,'review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','acme/shop',2,'alice','review','0 findings at 8777d56ed9e8, $0.000');
INSERT INTO "actions" VALUES(4,1772442000.0,'fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','acme/shop',2,'','fix','fixed at 8777d56ed9e8 (lint)');
INSERT INTO "actions" VALUES(5,1772442000.0,'comment/acme/shop/1/a131e66e-bde3-410d-a445-16f5301dd065','acme/shop',1,'alice','/approve','');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0003');
CREATE TABLE answers (
	"key" VARCHAR(128) NOT NULL, 
	answer TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY ("key")
);
CREATE TABLE application_versions (
    version_id TEXT NOT NULL PRIMARY KEY,
    version_name TEXT NOT NULL UNIQUE,
    version_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
, "application_name" TEXT DEFAULT NULL);
INSERT INTO "application_versions" VALUES('a7d7935d-9c5f-4a21-ba6e-7dae8fd02b5d','1',1795379700000,1795379700000,'regreen');
CREATE TABLE counters (
	name VARCHAR(128) NOT NULL, 
	number BIGINT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "counters" VALUES('sandbox_starts/docker',8);
CREATE TABLE dbos_migrations (version INTEGER NOT NULL PRIMARY KEY);
INSERT INTO "dbos_migrations" VALUES(125);
CREATE TABLE deliveries (
	id VARCHAR(64) NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	repo VARCHAR(255), 
	event TEXT NOT NULL, 
	received FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "deliveries" VALUES('637907d6-95a1-4479-980e-3635e7ea54e4','installation',NULL,'{"kind":"InstallationChanged","installation":1007,"account":"acme","change":"created","added":["acme/shop"],"removed":[]}',1772442000.0);
INSERT INTO "deliveries" VALUES('56e266d9-40ed-4fd3-b32f-dacc62707d42','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"main","after":"28c0aac56a7d0a9c61e1e430d6c9abbfb5b257d6"}',1772442000.0);
INSERT INTO "deliveries" VALUES('b2ff147a-b501-487a-b29f-b45da8b270d2','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"main","after":"d9844bbe25ad69535eb2b4e478925f7c524006c1"}',1772442000.0);
INSERT INTO "deliveries" VALUES('87c87ec9-c90b-4ad1-acd5-fa14a457f458','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"keys","after":"5d022f5a054f98102fe22a79f853a513df32ca5f"}',1772442000.0);
INSERT INTO "deliveries" VALUES('99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','pull_request','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"change":"opened","head_sha":"5d022f5a054f98102fe22a79f853a513df32ca5f","head_ref":"keys","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}',1772442000.0);
INSERT INTO "deliveries" VALUES('e862955a-dfea-4785-8ec1-4b666a4a5cce','pull_request_review_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"on_pull":true,"review":true,"comment_id":1025,"body":"**An AWS access key id is in the code: `AKIA\u2026[20 characters]`**\n\nEverybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)\n\n<details><summary>Evidence (analyzer): regreen secrets; on this change: AWS access key id; before it: not there</summary>\n\n```\nAKIA\u2026[20 characters]\n```\n\n</details>\n\n<sub>critical \u00b7 security \u00b7 `secrets/aws-access-key-id` \u00b7 93% sure \u00b7 `/dismiss 5e5c6407` if it is wrong</sub>\n\n<!-- regreen:finding:5e5c6407f4b6ea8cbba24f2dadcbb3cd -->","association":"NONE","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('bbc87f46-d039-4d9c-bc56-1f6f194932d1','pull_request_review_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"on_pull":true,"review":true,"comment_id":1026,"body":"**A secret is in the code: `\u2026[40 characters]`**\n\nEverybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)\n\n<details><summary>Evidence (analyzer): regreen secrets; on this change: secret; before it: not there</summary>\n\n```\n\u2026[40 characters]\n```\n\n</details>\n\n<sub>high \u00b7 security \u00b7 `secrets/secret` \u00b7 88% sure \u00b7 `/dismiss b9b4e76d` if it is wrong</sub>\n\n<!-- regreen:finding:b9b4e76d26f5187b5b9787e6abdeea6f -->","association":"NONE","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('4794ccb3-7344-435a-a0f3-16f0bbd1e5e3','issue_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"on_pull":true,"review":false,"comment_id":1034,"body":"/dismiss 5e5c6407 test data","association":"COLLABORATOR","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('c5ec1de4-9445-47e3-bdd1-94364199943d','pull_request_review_thread','acme/shop','{"kind":"ThreadChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"comments":[1025],"resolved":true}',1772442000.0);
INSERT INTO "deliveries" VALUES('a009bc87-76ea-4397-91e1-604d5bac5815','issue_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"on_pull":true,"review":false,"comment_id":1038,"body":"Dismissed: An AWS access key id is in the code: `AKIA\u2026[20 characters]`. It will not be raised again.\n\n<!-- regreen:reply:comment-1034 -->","association":"NONE","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('8a0799f8-1a14-42ee-a59c-84393a5b6c81','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"change","after":"8777d56ed9e80d01d58c2e210a1213d3877e0ea0"}',1772442000.0);
INSERT INTO "deliveries" VALUES('50934c02-335a-4a3f-9c9f-ef4e3d4eea47','pull_request','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":2,"change":"opened","head_sha":"8777d56ed9e80d01d58c2e210a1213d3877e0ea0","head_ref":"change","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}',1772442000.0);
INSERT INTO "deliveries" VALUES('04c9f364-558f-4be0-ba9f-f88708d9649f','workflow_run','acme/shop','{"kind":"CheckFailed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"octocat","is_bot":false},"name":"CI","head_sha":"8777d56ed9e80d01d58c2e210a1213d3877e0ea0","head_branch":"change","run_id":1058,"attempt":1,"pulls":[2],"fork":false,"app":""}',1772442000.0);
INSERT INTO "deliveries" VALUES('5264ae18-b6ec-4840-9821-6f26bdc08a45','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"branch":"regreen/fix-2","after":"4a3cdd6ffba7c46f8c5ee7263f999428cc338a5d"}',1772442000.0);
INSERT INTO "deliveries" VALUES('85078829-c22b-43b5-8525-2aa981ec7010','pull_request','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":3,"change":"opened","head_sha":"4a3cdd6ffba7c46f8c5ee7263f999428cc338a5d","head_ref":"regreen/fix-2","base_ref":"change","author":{"login":"regreen[bot]","is_bot":true},"draft":true,"fork":false,"merged":false}',1772442000.0);
INSERT INTO "deliveries" VALUES('4bd294b2-3cfe-4033-9d84-f3d20a826cd0','issue_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":2,"on_pull":true,"review":false,"comment_id":1075,"body":"A verified patch is in #3, as a draft. Cause: the code breaks rules that ruff check can mend by itself\n\n<!-- regreen:reply:fix-2 -->","association":"NONE","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('a131e66e-bde3-410d-a445-16f5301dd065','issue_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"on_pull":true,"review":false,"comment_id":1077,"body":"/approve","association":"COLLABORATOR","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('240ab53e-d9da-4f78-ab5d-44fde5b3f453','issue_comment','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"on_pull":true,"review":false,"comment_id":1080,"body":"Nothing here waits for an approval.\n\n<!-- regreen:reply:comment-1077 -->","association":"NONE","edited":false,"reply_to":null}',1772442000.0);
INSERT INTO "deliveries" VALUES('71cbcbbe-554b-4ae5-96f4-1e070bed56ee','push','acme/shop','{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"change","after":"c9be094ee93a65854c59c554d29b341bd192a6ef"}',1772442000.0);
INSERT INTO "deliveries" VALUES('df8fa700-60a4-41a1-83db-8998824eb8d8','pull_request','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":2,"change":"synchronize","head_sha":"c9be094ee93a65854c59c554d29b341bd192a6ef","head_ref":"change","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}',1772442000.0);
INSERT INTO "deliveries" VALUES('11111111-aaaa','x','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":7,"change":"pushed","head_sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","head_ref":"topic","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false,"at":"2026-11-23T04:00:00Z"}',1795406401.0);
INSERT INTO "deliveries" VALUES('22222222-bbbb','x','acme/shop','{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":7,"change":"pushed","head_sha":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","head_ref":"topic","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false,"at":"2026-11-23T04:00:00Z"}',1795406402.0);
INSERT INTO "deliveries" VALUES('33333333-cccc','x','acme/shop','{"kind":"Fix","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"number":8,"on_pull":true,"hint":"","asked_by":"alice","comment":null,"sha":"cccccccccccccccccccccccccccccccccccccccc"}',1795406403.0);
INSERT INTO "deliveries" VALUES('44444444-dddd','x','acme/shop','{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":9,"on_pull":true,"review":false,"comment_id":4711,"body":"/help","association":"OWNER","edited":false,"reply_to":null,"author":null,"before":"","at":""}',1795406404.0);
INSERT INTO "deliveries" VALUES('55555555-eeee','x','acme/shop','{"kind":"Tick","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"schedule":"nightly","due":"2026-11-23T03:00Z"}',1795406405.0);
CREATE TABLE documents (
	kind VARCHAR(16) NOT NULL, 
	repo VARCHAR(255) NOT NULL, 
	subject VARCHAR(300) NOT NULL, 
	number INTEGER, 
	job VARCHAR(400) NOT NULL, 
	at FLOAT NOT NULL, 
	body TEXT NOT NULL, 
	PRIMARY KEY (kind, repo, subject)
);
INSERT INTO "documents" VALUES('review','acme/shop','1@5d022f5a054f98102fe22a79f853a513df32ca5f',1,'review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467',1772442000.0,'{"version": 1, "base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "head": "5d022f5a054f98102fe22a79f853a513df32ca5f", "merge_base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "summary": "1 file changed (+3 -0), in shop. Read 1 of 1; a person would take about 1 minute. 2 findings.", "risk": "high", "scores": {"correctness": 100, "security": 26, "style": 100, "coverage": null}, "findings": [{"id": "5e5c6407", "fingerprint": "5e5c6407f4b6ea8cbba24f2dadcbb3cd", "dimension": "security", "rule": "secrets/aws-access-key-id", "severity": "critical", "blocking": false, "confidence": 0.93, "path": "shop/bulk.py", "start_line": 1, "line": 1, "side": "RIGHT", "title": "An AWS access key id is in the code: `AKIA\u2026[20 characters]`", "body": "Everybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)", "suggestion": null, "evidence": [{"kind": "analyzer", "excerpt": "AKIA\u2026[20 characters]", "command": "regreen secrets", "head": "AWS access key id", "base": "not there"}], "signals": null}, {"id": "b9b4e76d", "fingerprint": "b9b4e76d26f5187b5b9787e6abdeea6f", "dimension": "security", "rule": "secrets/secret", "severity": "high", "blocking": false, "confidence": 0.88, "path": "shop/bulk.py", "start_line": 2, "line": 2, "side": "RIGHT", "title": "A secret is in the code: `\u2026[40 characters]`", "body": "Everybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)", "suggestion": null, "evidence": [{"kind": "analyzer", "excerpt": "\u2026[40 characters]", "command": "regreen secrets", "head": "secret", "base": "not there"}], "signals": null}], "withheld": [], "not_reviewed": [], "skipped": [{"reviewer": "model", "reason": "no model: what the change means to do was not held against what it does, nor were edge cases, error paths, callers'' contracts and concurrency read, and no claim was tried by a generated test; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL for that"}, {"reviewer": "coverage", "reason": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}], "coverage": null, "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 0.95, "score_notes": {"correctness": "ruff''s bug rules on 1 Python files; basedpyright on 1 Python files; not done: model; no model read it", "security": "taint analysis and ruff''s S rules on 1 Python files; secrets looked for in 1 files; no model read it", "style": "0 habits learned from the repository; no model read it", "coverage": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}}');
INSERT INTO "documents" VALUES('review','acme/shop','2@8777d56ed9e80d01d58c2e210a1213d3877e0ea0',2,'review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47',1772442000.0,'{"version": 1, "base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "head": "8777d56ed9e80d01d58c2e210a1213d3877e0ea0", "merge_base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "summary": "1 file changed (+3 -0), in shop. Read 1 of 1; a person would take about 1 minute. No findings.", "risk": "low", "scores": {"correctness": 100, "security": 100, "style": 100, "coverage": null}, "findings": [], "withheld": [], "not_reviewed": [], "skipped": [{"reviewer": "model", "reason": "no model: what the change means to do was not held against what it does, nor were edge cases, error paths, callers'' contracts and concurrency read, and no claim was tried by a generated test; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL for that"}, {"reviewer": "coverage", "reason": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}], "coverage": null, "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 0.807, "score_notes": {"correctness": "ruff''s bug rules on 1 Python files; basedpyright on 1 Python files; not done: model; no model read it", "security": "taint analysis and ruff''s S rules on 1 Python files; secrets looked for in 1 files; no model read it", "style": "0 habits learned from the repository; no model read it", "coverage": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}}');
INSERT INTO "documents" VALUES('fix','acme/shop','fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f',2,'fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f',1772442000.0,'{"version": 1, "outcome": "fixed", "rung": "recipe", "patch": "diff --git a/shop/bulk.py b/shop/bulk.py\n--- a/shop/bulk.py\n+++ b/shop/bulk.py\n@@ -1,3 +1,2 @@\n-import os\n \n BULK = 100\n", "cause": "the code breaks rules that ruff check can mend by itself", "culprit": null, "before": {"command": "ruff check shop", "exit_code": 1, "failures": [{"test": "shop/bulk.py:1:8: F401", "kind": "F401", "message": "`os` imported but unused", "path": "shop/bulk.py", "line": 1, "frames": []}]}, "after": {"exit_code": 0, "reruns": 3, "failures": [], "kept": 0}, "gate": {"verdict": "allow", "reasons": []}, "attempts": [{"rung": "recipe", "summary": "ran ruff check --fix shop", "outcome": "accepted", "seconds": 1.370636166000054, "usd": 0.0, "patch": "diff --git a/shop/bulk.py b/shop/bulk.py\n--- a/shop/bulk.py\n+++ b/shop/bulk.py\n@@ -1,3 +1,2 @@\n-import os\n \n BULK = 100\n", "detail": "", "trail": [], "after": {"exit_code": 0, "reruns": 3, "failures": [], "kept": 0}, "gate": {"verdict": "allow", "reasons": []}}], "hints": [], "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 5.865885558999935, "strength": null, "reflection": null, "reason": "", "rev": "8777d56ed9e80d01d58c2e210a1213d3877e0ea0", "setup": "pip install ruff"}');
CREATE TABLE jobs (
	id VARCHAR(400) NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	repo VARCHAR(255) NOT NULL, 
	number INTEGER, 
	installation BIGINT NOT NULL, 
	queue VARCHAR(16) NOT NULL, 
	"key" VARCHAR(300) NOT NULL, 
	priority INTEGER NOT NULL, 
	event TEXT NOT NULL, 
	replaces VARCHAR(400), 
	state VARCHAR(16) NOT NULL, 
	attempts INTEGER NOT NULL, 
	created FLOAT NOT NULL, 
	due FLOAT NOT NULL, 
	started FLOAT, 
	ended FLOAT, 
	worker VARCHAR(128), 
	note TEXT NOT NULL, 
	progress TEXT NOT NULL, rank BIGINT DEFAULT '0' NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "jobs" VALUES('care/installation/1007/637907d6-95a1-4479-980e-3635e7ea54e4','care','',NULL,1007,'care','installation/1007',1,'{"kind":"InstallationChanged","installation":1007,"account":"acme","change":"created","added":["acme/shop"],"removed":[]}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','learnt 1 repository','',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/-/56e266d9-40ed-4fd3-b32f-dacc62707d42','comment','acme/shop',NULL,1007,'talk','acme/shop',1001,'{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"main","after":"28c0aac56a7d0a9c61e1e430d6c9abbfb5b257d6"}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','1 schedule','',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/-/b2ff147a-b501-487a-b29f-b45da8b270d2','comment','acme/shop',NULL,1007,'talk','acme/shop',1001,'{"kind":"Pushed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"branch":"main","after":"d9844bbe25ad69535eb2b4e478925f7c524006c1"}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','1 schedule','',0);
INSERT INTO "jobs" VALUES('review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','review','acme/shop',1,1007,'review','1007/3',1001,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"change":"opened","head_sha":"5d022f5a054f98102fe22a79f853a513df32ca5f","head_ref":"keys","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}','review/acme/shop/1','done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','2 findings, 0 withheld','reading: basedpyright',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/1/4794ccb3-7344-435a-a0f3-16f0bbd1e5e3','comment','acme/shop',1,1007,'talk','acme/shop#1',1,'{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"on_pull":true,"review":false,"comment_id":1034,"body":"/dismiss 5e5c6407 test data","association":"COLLABORATOR","edited":false,"reply_to":null}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','dismiss','',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/1/c5ec1de4-9445-47e3-bdd1-94364199943d','comment','acme/shop',1,1007,'talk','acme/shop#1',1,'{"kind":"ThreadChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":1,"comments":[1025],"resolved":true}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','a bot''s doing','',0);
INSERT INTO "jobs" VALUES('review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','review','acme/shop',2,1007,'review','1007/9',1002,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":2,"change":"opened","head_sha":"8777d56ed9e80d01d58c2e210a1213d3877e0ea0","head_ref":"change","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}','review/acme/shop/2','done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','0 findings, 0 withheld','reading: basedpyright',0);
INSERT INTO "jobs" VALUES('fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','fix','acme/shop',2,1007,'work','1007/6',1003,'{"kind":"CheckFailed","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"octocat","is_bot":false},"name":"CI","head_sha":"8777d56ed9e80d01d58c2e210a1213d3877e0ea0","head_branch":"change","run_id":1058,"attempt":1,"pulls":[2],"fork":false,"app":""}','fix/acme/shop/change/CI','done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','fixed: the code breaks rules that ruff check can mend by itself','recipe: ran ruff check --fix shop: accepted',0);
INSERT INTO "jobs" VALUES('review/acme/shop/3/85078829-c22b-43b5-8525-2aa981ec7010','review','acme/shop',3,1007,'review','1007/15',1004,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"regreen[bot]","is_bot":true},"number":3,"change":"opened","head_sha":"4a3cdd6ffba7c46f8c5ee7263f999428cc338a5d","head_ref":"regreen/fix-2","base_ref":"change","author":{"login":"regreen[bot]","is_bot":true},"draft":true,"fork":false,"merged":false}','review/acme/shop/3','done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','a draft','',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/1/a131e66e-bde3-410d-a445-16f5301dd065','comment','acme/shop',1,1007,'talk','acme/shop#1',1,'{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":1,"on_pull":true,"review":false,"comment_id":1077,"body":"/approve","association":"COLLABORATOR","edited":false,"reply_to":null}',NULL,'done',1,1772442000.0,1772442000.0,1772442000.0,1772442000.0,'main','approve','',0);
INSERT INTO "jobs" VALUES('review/acme/shop/2/df8fa700-60a4-41a1-83db-8998824eb8d8','review','acme/shop',2,1007,'review','1007/9',1001,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":2,"change":"synchronize","head_sha":"c9be094ee93a65854c59c554d29b341bd192a6ef","head_ref":"change","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false}','review/acme/shop/2','waiting',0,1772442000.0,1772442000.0,NULL,NULL,NULL,'','',0);
INSERT INTO "jobs" VALUES('review/acme/shop/7/11111111-aaaa','review','acme/shop',7,1007,'review','1007/0',1001,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":7,"change":"pushed","head_sha":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","head_ref":"topic","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false,"at":"2026-11-23T04:00:00Z"}','review/acme/shop/7','superseded',0,1795406401.0,1795406401.0,NULL,1795406402.0,NULL,'a newer one came: review/acme/shop/7/22222222-bbbb','',0);
INSERT INTO "jobs" VALUES('review/acme/shop/7/22222222-bbbb','review','acme/shop',7,1007,'review','1007/0',1002,'{"kind":"PullRequestChanged","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":7,"change":"pushed","head_sha":"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb","head_ref":"topic","base_ref":"main","author":{"login":"alice","is_bot":false},"draft":false,"fork":false,"merged":false,"at":"2026-11-23T04:00:00Z"}','review/acme/shop/7','waiting',0,1795406402.0,1795407002.0,NULL,NULL,NULL,'','',0);
INSERT INTO "jobs" VALUES('fix/acme/shop/8/33333333-cccc','fix','acme/shop',8,1007,'work','1007/0',3,'{"kind":"Fix","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"number":8,"on_pull":true,"hint":"","asked_by":"alice","comment":null,"sha":"cccccccccccccccccccccccccccccccccccccccc"}',NULL,'running',1,1795406403.0,1795406403.0,1795406405.0,NULL,'main','','fetching the repository',0);
INSERT INTO "jobs" VALUES('comment/acme/shop/9/44444444-dddd','comment','acme/shop',9,1007,'talk','acme/shop#9',1,'{"kind":"CommentPosted","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"actor":{"login":"alice","is_bot":false},"number":9,"on_pull":true,"review":false,"comment_id":4711,"body":"/help","association":"OWNER","edited":false,"reply_to":null,"author":null,"before":"","at":""}',NULL,'waiting',1,1795406404.0,1795410005.0,1795406405.0,NULL,'main','the database failed','',0);
INSERT INTO "jobs" VALUES('tick/acme/shop/-/55555555-eeee','tick','acme/shop',NULL,1007,'work','1007/0',2004,'{"kind":"Tick","where":{"repo":"acme/shop","repo_id":1001,"installation":1007,"default_branch":"main"},"schedule":"nightly","due":"2026-11-23T03:00Z"}',NULL,'done',1,1795406405.0,1795406405.0,1795406405.0,1795406405.0,'main','green','',0);
CREATE TABLE ledger (
	id INTEGER NOT NULL, 
	at FLOAT NOT NULL, 
	job VARCHAR(400) NOT NULL, 
	repo VARCHAR(255) NOT NULL, 
	number INTEGER, 
	purpose VARCHAR(128) NOT NULL, 
	model VARCHAR(128) NOT NULL, 
	usd FLOAT NOT NULL, 
	calls INTEGER NOT NULL, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE lines (
	id INTEGER NOT NULL, 
	"key" VARCHAR(300) NOT NULL, 
	line TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "lines" VALUES(1,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','fetching the repository',1772442000.0);
INSERT INTO "lines" VALUES(2,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: ruff',1772442000.0);
INSERT INTO "lines" VALUES(3,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: mistakes',1772442000.0);
INSERT INTO "lines" VALUES(4,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: contracts',1772442000.0);
INSERT INTO "lines" VALUES(5,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: imports of JavaScript and TypeScript',1772442000.0);
INSERT INTO "lines" VALUES(6,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: uses of Go packages',1772442000.0);
INSERT INTO "lines" VALUES(7,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: vacuous tests',1772442000.0);
INSERT INTO "lines" VALUES(8,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: model',1772442000.0);
INSERT INTO "lines" VALUES(9,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: security',1772442000.0);
INSERT INTO "lines" VALUES(10,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','following untrusted values through 1 files',1772442000.0);
INSERT INTO "lines" VALUES(11,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: syntax',1772442000.0);
INSERT INTO "lines" VALUES(12,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: secrets',1772442000.0);
INSERT INTO "lines" VALUES(13,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: workflows',1772442000.0);
INSERT INTO "lines" VALUES(14,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: conventions',1772442000.0);
INSERT INTO "lines" VALUES(15,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: dependencies',1772442000.0);
INSERT INTO "lines" VALUES(16,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: the repository''s linters',1772442000.0);
INSERT INTO "lines" VALUES(17,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: coverage',1772442000.0);
INSERT INTO "lines" VALUES(18,'progress/review/acme/shop/1/99fc81c8-f4e9-4ebb-9d4e-97b9840a7467','reading: basedpyright',1772442000.0);
INSERT INTO "lines" VALUES(19,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','fetching the repository',1772442000.0);
INSERT INTO "lines" VALUES(20,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: ruff',1772442000.0);
INSERT INTO "lines" VALUES(21,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: mistakes',1772442000.0);
INSERT INTO "lines" VALUES(22,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: syntax',1772442000.0);
INSERT INTO "lines" VALUES(23,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: imports of JavaScript and TypeScript',1772442000.0);
INSERT INTO "lines" VALUES(24,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: uses of Go packages',1772442000.0);
INSERT INTO "lines" VALUES(25,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: vacuous tests',1772442000.0);
INSERT INTO "lines" VALUES(26,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: model',1772442000.0);
INSERT INTO "lines" VALUES(27,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: security',1772442000.0);
INSERT INTO "lines" VALUES(28,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','following untrusted values through 1 files',1772442000.0);
INSERT INTO "lines" VALUES(29,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: secrets',1772442000.0);
INSERT INTO "lines" VALUES(30,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: dependencies',1772442000.0);
INSERT INTO "lines" VALUES(31,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: workflows',1772442000.0);
INSERT INTO "lines" VALUES(32,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: conventions',1772442000.0);
INSERT INTO "lines" VALUES(33,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: contracts',1772442000.0);
INSERT INTO "lines" VALUES(34,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: the repository''s linters',1772442000.0);
INSERT INTO "lines" VALUES(35,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: coverage',1772442000.0);
INSERT INTO "lines" VALUES(36,'progress/review/acme/shop/2/50934c02-335a-4a3f-9c9f-ef4e3d4eea47','reading: basedpyright',1772442000.0);
INSERT INTO "lines" VALUES(37,'progress/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','fetching the repository',1772442000.0);
INSERT INTO "lines" VALUES(38,'progress/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','running ruff check shop at 8777d56ed9e8, 3 times',1772442000.0);
INSERT INTO "lines" VALUES(39,'progress/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','running it at the base d9844bbe25ad',1772442000.0);
INSERT INTO "lines" VALUES(40,'progress/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','rung recipe',1772442000.0);
INSERT INTO "lines" VALUES(41,'progress/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','recipe: ran ruff check --fix shop: accepted',1772442000.0);
INSERT INTO "lines" VALUES(42,'progress/fix/acme/shop/8/33333333-cccc','fetching the repository',1795406405.0);
INSERT INTO "lines" VALUES(43,'bisect/verdict:1','{"a": 1}',1795406405.0);
CREATE TABLE memory (
	space VARCHAR(300) NOT NULL, 
	"key" VARCHAR(400) NOT NULL, 
	value TEXT NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (space, "key")
);
INSERT INTO "memory" VALUES('config','acme/shop','bisect:
  schedules:
    - {name: nightly, cron: ''0 3 * * *'', branch: main, test: ''python -m unittest'', lookback_days: 14}
',1772442000.0);
INSERT INTO "memory" VALUES('schedules','acme/shop','{"where": {"repo": "acme/shop", "repo_id": 1001, "installation": 1007, "default_branch": "main"}, "schedules": [{"name": "nightly", "cron": "0 3 * * *", "branch": "main", "test": "python -m unittest", "lookback_days": 14}]}',1772442000.0);
INSERT INTO "memory" VALUES('learnt/care/installation/1007/637907d6-95a1-4479-980e-3635e7ea54e4','acme/shop','',1772442000.0);
INSERT INTO "memory" VALUES('github-limit','app core','[4955, 5000, 1772445600.0]',1772442000.0);
INSERT INTO "memory" VALUES('github-limit','installation/1007 core','[4923, 5000, 1772445600.0]',1772442000.0);
INSERT INTO "memory" VALUES('review','review-facce352baf728f03cc659c8','{"base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "head": "5d022f5a054f98102fe22a79f853a513df32ca5f", "merge_base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "summary": "1 file changed (+3 -0), in shop. Read 1 of 1; a person would take about 1 minute. 2 findings.", "risk": "high", "scores": {"correctness": 100, "security": 26, "style": 100, "coverage": null}, "findings": [{"id": "5e5c6407", "fingerprint": "5e5c6407f4b6ea8cbba24f2dadcbb3cd", "dimension": "security", "rule": "secrets/aws-access-key-id", "severity": "critical", "blocking": false, "confidence": 0.93, "path": "shop/bulk.py", "start_line": 1, "line": 1, "side": "RIGHT", "title": "An AWS access key id is in the code: `AKIA\u2026[20 characters]`", "body": "Everybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)", "suggestion": null, "evidence": [{"kind": "analyzer", "excerpt": "AKIA\u2026[20 characters]", "command": "regreen secrets", "head": "AWS access key id", "base": "not there"}], "signals": null}, {"id": "b9b4e76d", "fingerprint": "b9b4e76d26f5187b5b9787e6abdeea6f", "dimension": "security", "rule": "secrets/secret", "severity": "high", "blocking": false, "confidence": 0.88, "path": "shop/bulk.py", "start_line": 2, "line": 2, "side": "RIGHT", "title": "A secret is in the code: `\u2026[40 characters]`", "body": "Everybody who can read the repository, now or later, can use it. Revoke it first, then read it from the environment or a secret store: removing the line leaves it in the history. (CWE-798)", "suggestion": null, "evidence": [{"kind": "analyzer", "excerpt": "\u2026[40 characters]", "command": "regreen secrets", "head": "secret", "base": "not there"}], "signals": null}], "withheld": [], "not_reviewed": [], "skipped": [{"reviewer": "model", "reason": "no model: what the change means to do was not held against what it does, nor were edge cases, error paths, callers'' contracts and concurrency read, and no claim was tried by a generated test; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL for that"}, {"reviewer": "coverage", "reason": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}], "coverage": null, "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 0.95, "score_notes": {"correctness": "ruff''s bug rules on 1 Python files; basedpyright on 1 Python files; not done: model; no model read it", "security": "taint analysis and ruff''s S rules on 1 Python files; secrets looked for in 1 files; no model read it", "style": "0 habits learned from the repository; no model read it", "coverage": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}}',1772442000.0);
INSERT INTO "memory" VALUES('posted/acme/shop#1','5e5c6407f4b6ea8cbba24f2dadcbb3cd','["5e5c6407", "An AWS access key id is in the code: `AKIA\u2026[20 characters]`", "shop/bulk.py", "secrets/aws-access-key-id", "security", "", "AWS_KEY=\"AKIAZ7Q4MNB2XKPL5RWD\"", 0.93, "", "", "RIGHT"]',1772442000.0);
INSERT INTO "memory" VALUES('posted/acme/shop#1','b9b4e76d26f5187b5b9787e6abdeea6f','["b9b4e76d", "A secret is in the code: `\u2026[40 characters]`", "shop/bulk.py", "secrets/secret", "security", "", "AWS_SECRET=\"u9Kd+3nQ0wXz7RtYpLmVbC5sEfGh1JkA2oIiUqTz\"", 0.88, "", "", "RIGHT"]',1772442000.0);
INSERT INTO "memory" VALUES('commands/acme/shop/1034','dismiss 5e5c6407 test data','comment/acme/shop/1/4794ccb3-7344-435a-a0f3-16f0bbd1e5e3',1772442000.0);
INSERT INTO "memory" VALUES('pace','acme/shop/alice','[1772442000.0, 1772442000.0]',1772442000.0);
INSERT INTO "memory" VALUES('dismissed/acme/shop#1','5e5c6407f4b6ea8cbba24f2dadcbb3cd','["alice", "test data"]',1772442000.0);
INSERT INTO "memory" VALUES('outcomes','acme/shop#1/5e5c6407f4b6ea8cbba24f2dadcbb3cd','{"repo": "acme/shop", "number": 1, "fingerprint": "5e5c6407f4b6ea8cbba24f2dadcbb3cd", "rule": "secrets/aws-access-key-id", "confidence": 0.93, "how": "dismissed", "at": "2026-03-02T09:00:00+00:00", "signals": null}',1772442000.0);
INSERT INTO "memory" VALUES('reply/acme/shop#1/comment-1034','000','Dismissed: An AWS access key id is in the code: `AKIA…[20 characters]`. It will not be raised again.',1772442000.0);
INSERT INTO "memory" VALUES('review','review-6c99c704274d0eaf890686d7','{"base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "head": "8777d56ed9e80d01d58c2e210a1213d3877e0ea0", "merge_base": "d9844bbe25ad69535eb2b4e478925f7c524006c1", "summary": "1 file changed (+3 -0), in shop. Read 1 of 1; a person would take about 1 minute. No findings.", "risk": "low", "scores": {"correctness": 100, "security": 100, "style": 100, "coverage": null}, "findings": [], "withheld": [], "not_reviewed": [], "skipped": [{"reviewer": "model", "reason": "no model: what the change means to do was not held against what it does, nor were edge cases, error paths, callers'' contracts and concurrency read, and no claim was tried by a generated test; set ANTHROPIC_API_KEY or ANTHROPIC_BASE_URL for that"}, {"reviewer": "coverage", "reason": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}], "coverage": null, "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 0.807, "score_notes": {"correctness": "ruff''s bug rules on 1 Python files; basedpyright on 1 Python files; not done: model; no model read it", "security": "taint analysis and ruff''s S rules on 1 Python files; secrets looked for in 1 files; no model read it", "style": "0 habits learned from the repository; no model read it", "coverage": "the tests were not asked for (--run-tests, or tests.command in .github/regreen.yml, runs them)"}}',1772442000.0);
INSERT INTO "memory" VALUES('fix-tries/acme/shop/2026-03-02','change@8777d56ed9e80d01d58c2e210a1213d3877e0ea0','1',1772442000.0);
INSERT INTO "memory" VALUES('fix-attempts/acme/shop','8777d56ed9e80d01d58c2e210a1213d3877e0ea0/fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','1',1772442000.0);
INSERT INTO "memory" VALUES('fix-result','fix/acme/shop/2/04c9f364-558f-4be0-ba9f-f88708d9649f','{"fix": {"outcome": "fixed", "rung": "recipe", "patch": "diff --git a/shop/bulk.py b/shop/bulk.py\n--- a/shop/bulk.py\n+++ b/shop/bulk.py\n@@ -1,3 +1,2 @@\n-import os\n \n BULK = 100\n", "cause": "the code breaks rules that ruff check can mend by itself", "culprit": null, "before": {"command": "ruff check shop", "exit_code": 1, "failures": [{"test": "shop/bulk.py:1:8: F401", "kind": "F401", "message": "`os` imported but unused", "path": "shop/bulk.py", "line": 1, "frames": []}]}, "after": {"exit_code": 0, "reruns": 3, "failures": [], "kept": 0}, "gate": {"verdict": "allow", "reasons": []}, "attempts": [{"rung": "recipe", "summary": "ran ruff check --fix shop", "outcome": "accepted", "seconds": 1.370636166000054, "usd": 0.0, "patch": "diff --git a/shop/bulk.py b/shop/bulk.py\n--- a/shop/bulk.py\n+++ b/shop/bulk.py\n@@ -1,3 +1,2 @@\n-import os\n \n BULK = 100\n", "detail": "", "trail": [], "after": {"exit_code": 0, "reruns": 3, "failures": [], "kept": 0}, "gate": {"verdict": "allow", "reasons": []}}], "hints": [], "cost": {"usd": 0.0, "calls": 0, "input_tokens": 0, "output_tokens": 0, "cached_tokens": 0}, "seconds": 5.865885558999935, "strength": null, "reflection": null, "reason": "", "rev": "8777d56ed9e80d01d58c2e210a1213d3877e0ea0", "setup": "pip install ruff"}, "name": "lint", "step": "Lint", "url": "http://127.0.0.1:32815/acme/shop/actions/runs/1058/job/1062"}',1772442000.0);
INSERT INTO "memory" VALUES('fix-open/acme/shop','change','3',1772442000.0);
INSERT INTO "memory" VALUES('reply/acme/shop#2/fix-2','000','A verified patch is in #3, as a draft. Cause: the code breaks rules that ruff check can mend by itself',1772442000.0);
INSERT INTO "memory" VALUES('commands/acme/shop/1077','approve ','comment/acme/shop/1/a131e66e-bde3-410d-a445-16f5301dd065',1772442000.0);
INSERT INTO "memory" VALUES('reply/acme/shop#1/comment-1077','000','Nothing here waits for an approval.',1772442000.0);
INSERT INTO "memory" VALUES('giving-up','comment/acme/shop/9/44444444-dddd','gave up after 5 attempts: GitHub is away',1795406405.0);
INSERT INTO "memory" VALUES('posted/acme/shop#7','abcd1234abcd1234abcd1234abcd1234','["abcd1234", "Off by one", "shop/prices.py", "model/logic", "correctness", "5cfaf127e27c3eaf6acf3a1df8e138d0", "y=2z=3", 0.7, "{\"readers\": 2, \"readings\": 3, \"verdict\": \"unread\", \"certainty\": 0.5, \"sure\": 0.5, \"proof\": \"not_run\", \"worth\": \"unsaid\"}", "x=1", "RIGHT"]',1795406405.0);
INSERT INTO "memory" VALUES('posted/acme/shop#7','eeee1234eeee1234eeee1234eeee1234','["eeee1234", "Left", "shop/prices.py", "model/logic", "correctness", "5cfaf127e27c3eaf6acf3a1df8e138d0", "", 0.7, "", "", "LEFT"]',1795406405.0);
INSERT INTO "memory" VALUES('dismissed/acme/shop#7','eeee1234eeee1234eeee1234eeee1234','["alice", "its thread was resolved"]',1795406405.0);
INSERT INTO "memory" VALUES('to-resolve/acme/shop#7','eeee1234eeee1234eeee1234eeee1234','',1795406405.0);
INSERT INTO "memory" VALUES('outcomes','acme/shop#7/abcd1234abcd1234abcd1234abcd1234','{"repo": "acme/shop", "number": 7, "fingerprint": "abcd1234abcd1234abcd1234abcd1234", "rule": "model/logic", "confidence": 0.7, "how": "up", "at": "2026-11-23T04:00:05+00:00", "signals": {"readers": 2, "readings": 3, "verdict": "unread", "certainty": 0.5, "sure": 0.5, "proof": "not_run", "worth": "unsaid"}}',1795406405.0);
INSERT INTO "memory" VALUES('approved/acme/shop','7@bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','alice',1795406405.0);
INSERT INTO "memory" VALUES('pending/acme/shop','8','{"at": 1795406405.0, "patch": "diff --git a/x b/x\n", "branch": "topic", "sha": "cccccccccccccccccccccccccccccccccccccccc", "title": "Fix it", "body": "why", "on_pull": true, "workflow": ".github/workflows/ci.yml"}',1795406405.0);
INSERT INTO "memory" VALUES('pending/acme/shop','@dddddddddddddddddddddddddddddddddddddddd','{"at": 1795406405.0, "patch": "diff --git a/y b/y\n", "branch": "main", "sha": "dddddddddddddddddddddddddddddddddddddddd", "title": "Fix main", "body": "why", "on_pull": false}',1795406405.0);
INSERT INTO "memory" VALUES('fix-open/acme/shop','topic','{"draft": true, "text": "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff", "number": 12, "workflow": ".github/workflows/ci.yml"}',1795406405.0);
INSERT INTO "memory" VALUES('branches','acme/shop@regreen/fix-12','{"job": "fix/acme/shop/8/33333333-cccc", "installation": 1007, "sha": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"}',1795406405.0);
INSERT INTO "memory" VALUES('pushed/acme/shop','regreen/fix-12','["eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee", "ffffffffffffffffffffffffffffffffffffffff"]',1795406405.0);
INSERT INTO "memory" VALUES('schedule/acme/shop/nightly','green','1111111111111111111111111111111111111111',1795406405.0);
INSERT INTO "memory" VALUES('schedule/acme/shop/nightly','red','{"head": "2222222222222222222222222222222222222222", "issue": 31, "issues": [30, 31]}',1795406405.0);
INSERT INTO "memory" VALUES('schedule/acme/shop/weekly','red','{"head": "3333333333333333333333333333333333333333", "issue": 33}',1795406405.0);
INSERT INTO "memory" VALUES('moved','1001','{"repo": "acme/shop", "before": ["acme/old-shop"]}',1795406405.0);
INSERT INTO "memory" VALUES('reverts/acme/shop','4444444444444444444444444444444444444444','40',1795406405.0);
INSERT INTO "memory" VALUES('reverts/acme/shop/2026-11-23','4444444444444444444444444444444444444444','1',1795406405.0);
INSERT INTO "memory" VALUES('reverts/acme/shop/passed','4444444444444444444444444444444444444444@5555555555555555555555555555555555555555','source',1795406405.0);
INSERT INTO "memory" VALUES('reviewed/acme/shop','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb','success: no findings',1795406405.0);
INSERT INTO "memory" VALUES('code-scanning','review-abc','bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb',1795406405.0);
INSERT INTO "memory" VALUES('refused/acme/shop','7/mallory','[1795406405.0, "fix/acme/shop/8/33333333-cccc/0"]',1795406405.0);
INSERT INTO "memory" VALUES('config-missing','1007/acme','2026-11-23T04:05:05+00:00',1795406405.0);
INSERT INTO "memory" VALUES('learnt/care/schedules/1','acme/shop','',1795406405.0);
INSERT INTO "memory" VALUES('health','sandbox','',1795406405.0);
INSERT INTO "memory" VALUES('ticks','last','2026-11-23T04:00:05+00:00',1795406405.0);
INSERT INTO "memory" VALUES('dashboard-session-secret','operator','s3crets3crets3crets3crets3crets3crets3crets3cret',1795406405.0);
INSERT INTO "memory" VALUES('dashboard-session','9999999999999999999999999999999999999999999999999999999999999999','{"login": "alice", "reads": ["acme/shop"], "writes": [], "until": "2026-11-23T05:00:05+00:00"}',1795406405.0);
CREATE TABLE notifications (
    message_uuid TEXT NOT NULL DEFAULT (hex(randomblob(16))) PRIMARY KEY,
    destination_uuid TEXT NOT NULL,
    topic TEXT,
    message TEXT NOT NULL,
    created_at_epoch_ms INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000), "serialization" TEXT DEFAULT NULL, "consumed" BOOLEAN NOT NULL DEFAULT FALSE, consumed_by_function_id INTEGER,
    FOREIGN KEY (destination_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE "operation_outputs" (
    workflow_uuid TEXT NOT NULL,
    function_id INTEGER NOT NULL,
    function_name TEXT NOT NULL DEFAULT '',
    output TEXT,
    error TEXT,
    child_workflow_id TEXT,
    started_at_epoch_ms INTEGER,
    completed_at_epoch_ms INTEGER,
    serialization TEXT,
    application_name TEXT DEFAULT NULL,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    PRIMARY KEY (workflow_uuid, function_id)
);
CREATE TABLE queues (
    queue_id TEXT PRIMARY KEY DEFAULT (hex(randomblob(16))),
    name TEXT NOT NULL UNIQUE,
    concurrency INTEGER,
    worker_concurrency INTEGER,
    rate_limit_max INTEGER,
    rate_limit_period_sec REAL,
    priority_enabled BOOLEAN NOT NULL DEFAULT FALSE,
    partition_queue BOOLEAN NOT NULL DEFAULT FALSE,
    polling_interval_sec REAL NOT NULL DEFAULT 1.0,
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    updated_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
, "application_name" TEXT DEFAULT NULL, "partition_concurrency" INTEGER DEFAULT NULL, "partition_worker_concurrency" INTEGER DEFAULT NULL, "partition_rate_limit_max" INTEGER DEFAULT NULL, "partition_rate_limit_period_sec" REAL DEFAULT NULL);
INSERT INTO "queues" VALUES('CE75E780AAF41032C55F3A4C54F9D88F','talk',NULL,4,NULL,NULL,1,1,0.5,1795379700000,1795379700583,'regreen',1,NULL,NULL,NULL);
INSERT INTO "queues" VALUES('D06589C635AAB4E12AD94F2AC1D60746','review',NULL,2,NULL,NULL,1,1,1.0,1795379700000,1795379700600,'regreen',1,NULL,NULL,NULL);
INSERT INTO "queues" VALUES('4C8AAA24D61533E14D3307032A4E3B57','work',NULL,2,NULL,NULL,1,1,1.0,1795379700000,1795379700605,'regreen',1,NULL,NULL,NULL);
INSERT INTO "queues" VALUES('2F72717E1D1EA73AA6DE3EFDCF490909','care',NULL,1,NULL,NULL,1,1,2.0,1795379700000,1795379700610,'regreen',1,NULL,NULL,NULL);
CREATE TABLE streams (
    workflow_uuid TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    "offset" INTEGER NOT NULL, function_id INTEGER NOT NULL DEFAULT 0, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, key, "offset"),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE turns (
	id INTEGER NOT NULL, 
	name VARCHAR(128) NOT NULL, 
	at FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE workers (
	id VARCHAR(128) NOT NULL, 
	seen FLOAT NOT NULL, 
	PRIMARY KEY (id)
);
INSERT INTO "workers" VALUES('main',1.79540941992301487919e+09);
CREATE TABLE workflow_events (
    workflow_uuid TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, key),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid) 
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE workflow_events_history (
    workflow_uuid TEXT NOT NULL,
    function_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL, "serialization" TEXT DEFAULT NULL,
    PRIMARY KEY (workflow_uuid, function_id, key),
    FOREIGN KEY (workflow_uuid) REFERENCES workflow_status(workflow_uuid)
        ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE TABLE workflow_input (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    inputs TEXT,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
);
INSERT INTO "workflow_input" VALUES('review/acme/shop/2/df8fa700-60a4-41a1-83db-8998824eb8d8','{"namedArgs":{},"positionalArgs":["review/acme/shop/2/df8fa700-60a4-41a1-83db-8998824eb8d8"]}',1795379702000);
INSERT INTO "workflow_input" VALUES('review/acme/shop/7/11111111-aaaa','{"namedArgs":{},"positionalArgs":["review/acme/shop/7/11111111-aaaa"]}',1795409419000);
INSERT INTO "workflow_input" VALUES('review/acme/shop/7/22222222-bbbb','{"namedArgs":{},"positionalArgs":["review/acme/shop/7/22222222-bbbb"]}',1795409419000);
INSERT INTO "workflow_input" VALUES('fix/acme/shop/8/33333333-cccc','{"namedArgs":{},"positionalArgs":["fix/acme/shop/8/33333333-cccc"]}',1795409419000);
INSERT INTO "workflow_input" VALUES('comment/acme/shop/9/44444444-dddd','{"namedArgs":{},"positionalArgs":["comment/acme/shop/9/44444444-dddd"]}',1795409419000);
INSERT INTO "workflow_input" VALUES('tick/acme/shop/-/55555555-eeee','{"namedArgs":{},"positionalArgs":["tick/acme/shop/-/55555555-eeee"]}',1795409419000);
CREATE TABLE workflow_output (
    workflow_uuid TEXT NOT NULL PRIMARY KEY,
    output TEXT,
    error TEXT,
    retention_timestamp INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000)
);
CREATE TABLE workflow_schedules (
    schedule_id TEXT PRIMARY KEY,
    schedule_name TEXT NOT NULL UNIQUE,
    workflow_name TEXT NOT NULL,
    workflow_class_name TEXT,
    schedule TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'ACTIVE',
    context TEXT NOT NULL
, "last_fired_at" TEXT DEFAULT NULL, "automatic_backfill" BOOLEAN NOT NULL DEFAULT FALSE, "cron_timezone" TEXT DEFAULT NULL, "queue_name" TEXT DEFAULT NULL, "application_name" TEXT DEFAULT NULL);
CREATE TABLE workflow_status (
    workflow_uuid TEXT PRIMARY KEY,
    status TEXT,
    name TEXT,
    authenticated_user TEXT,
    assumed_role TEXT,
    authenticated_roles TEXT,
    request TEXT,
    output TEXT,
    error TEXT,
    executor_id TEXT,
    created_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    updated_at INTEGER NOT NULL DEFAULT (strftime('%s','now') * 1000),
    application_version TEXT,
    application_id TEXT,
    class_name TEXT DEFAULT NULL,
    config_name TEXT DEFAULT NULL,
    recovery_attempts INTEGER DEFAULT 0,
    queue_name TEXT,
    workflow_timeout_ms INTEGER,
    workflow_deadline_epoch_ms INTEGER,
    inputs TEXT,
    started_at_epoch_ms INTEGER,
    deduplication_id TEXT,
    priority INTEGER NOT NULL DEFAULT 0
, queue_partition_key TEXT, forked_from TEXT, "owner_xid" TEXT DEFAULT NULL, "parent_workflow_id" TEXT DEFAULT NULL, "serialization" TEXT DEFAULT NULL, "delay_until_epoch_ms" BIGINT DEFAULT NULL, "was_forked_from" BOOLEAN NOT NULL DEFAULT FALSE, "rate_limited" BOOLEAN NOT NULL DEFAULT FALSE, "completed_at" BIGINT, "attributes" TEXT, "schedule_name" TEXT, "debounce_deadline_epoch_ms" BIGINT DEFAULT NULL, "is_debounced" BOOLEAN NOT NULL DEFAULT FALSE, "application_name" TEXT DEFAULT NULL, "creator_xid" TEXT DEFAULT NULL);
INSERT INTO "workflow_status" VALUES('review/acme/shop/2/df8fa700-60a4-41a1-83db-8998824eb8d8','ENQUEUED','job',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795379702000,1795379702000,'1',NULL,NULL,NULL,0,'review',NULL,NULL,NULL,NULL,NULL,1001,'1007/9',NULL,NULL,NULL,'portable_json',NULL,0,0,NULL,'null',NULL,NULL,0,'regreen','fadd9834-b026-40e6-898b-514efef13eac');
INSERT INTO "workflow_status" VALUES('review/acme/shop/7/11111111-aaaa','ENQUEUED','job',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795409419000,1795409419000,'1',NULL,NULL,NULL,0,'review',NULL,NULL,NULL,NULL,NULL,1001,'1007/0',NULL,NULL,NULL,'portable_json',NULL,0,0,NULL,'null',NULL,NULL,0,'regreen','efd42d5b-0a37-4f6e-b904-48b1aa040a9d');
INSERT INTO "workflow_status" VALUES('review/acme/shop/7/22222222-bbbb','DELAYED','job',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1795409419000,1795409419000,'1',NULL,NULL,NULL,0,'review',NULL,NULL,NULL,NULL,NULL,1002,'1007/0',NULL,NULL,NULL,'portable_json',1795410019880,0,0,NULL,'null',NULL,NULL,0,'regreen','f1e9d77e-d57e-4e48-98bf-d580067bdb45');
INSERT INTO "workflow_status" VALUES('fix/acme/shop/8/33333333-cccc','PENDING','job',NULL,NULL,NULL,NULL,NULL,NULL,'main',1795409419000,1795409419000,'1',NULL,NULL,NULL,0,'work',NULL,NULL,NULL,NULL,NULL,3,'1007/0',NULL,NULL,NULL,'portable_json',NULL,0,0,NULL,'null',NULL,NULL,0,'regreen','61eced0b-f456-4251-91aa-0fc39a3e457d');
INSERT INTO "workflow_status" VALUES('comment/acme/shop/9/44444444-dddd','PENDING','job',NULL,NULL,NULL,NULL,NULL,NULL,'main',1795409419000,1795409419000,'1',NULL,NULL,NULL,0,'talk',NULL,NULL,NULL,NULL,NULL,1,'acme/shop#9',NULL,NULL,NULL,'portable_json',NULL,0,0,NULL,'null',NULL,NULL,0,'regreen','23656f3c-e0ab-4699-833c-4a6b44c053e2');
INSERT INTO "workflow_status" VALUES('tick/acme/shop/-/55555555-eeee','SUCCESS','job',NULL,NULL,NULL,NULL,NULL,NULL,'main',1795409419000,1795409419000,'1',NULL,NULL,NULL,0,'work',NULL,NULL,NULL,NULL,NULL,2004,'1007/0',NULL,NULL,NULL,'portable_json',NULL,0,0,NULL,'null',NULL,NULL,0,'regreen','2d4de254-b2ce-4d2a-8449-896f6695c3b5');
CREATE INDEX ix_deliveries_received ON deliveries (received);
CREATE INDEX jobs_by_repo ON jobs (repo, created);
CREATE INDEX jobs_by_replaces ON jobs (replaces, state);
CREATE INDEX jobs_by_number ON jobs (repo, number, created);
CREATE INDEX jobs_by_time ON jobs (created);
CREATE INDEX jobs_by_state_and_time ON jobs (state, created);
CREATE INDEX jobs_of_schedules ON jobs (created) WHERE kind = 'tick';
CREATE INDEX jobs_by_state ON jobs (state, priority, created);
CREATE INDEX ix_answers_at ON answers (at);
CREATE INDEX ledger_by_repo_with_cost ON ledger (repo, at, usd);
CREATE INDEX ledger_by_job ON ledger (job);
CREATE INDEX documents_by_repo ON documents (repo, kind, at);
CREATE INDEX documents_by_kind ON documents (kind, at);
CREATE INDEX ix_documents_at ON documents (at);
CREATE INDEX documents_by_job ON documents (job);
CREATE INDEX ix_lines_key ON lines ("key");
CREATE INDEX turns_by_name ON turns (name, at);
CREATE INDEX ix_actions_repo ON actions (repo);
CREATE INDEX workflow_status_created_at_index ON workflow_status (created_at);
CREATE INDEX idx_workflow_topic ON notifications (destination_uuid, topic);
CREATE INDEX "idx_workflow_status_delayed" ON "workflow_status" ("delay_until_epoch_ms") WHERE status = 'DELAYED';
CREATE INDEX "idx_workflow_status_forked_from" ON "workflow_status" ("forked_from") WHERE "forked_from" IS NOT NULL;
CREATE INDEX "idx_workflow_status_parent_workflow_id" ON "workflow_status" ("parent_workflow_id") WHERE "parent_workflow_id" IS NOT NULL;
CREATE UNIQUE INDEX "uq_workflow_status_dedup_id" ON "workflow_status" ("queue_name", "deduplication_id") WHERE "deduplication_id" IS NOT NULL;
CREATE INDEX "idx_workflow_status_pending" ON "workflow_status" ("created_at") WHERE "status" = 'PENDING';
CREATE INDEX "idx_workflow_status_failed" ON "workflow_status" ("status", "created_at") WHERE "status" IN ('ERROR', 'CANCELLED', 'MAX_RECOVERY_ATTEMPTS_EXCEEDED');
CREATE INDEX "idx_workflow_status_rate_limited" ON "workflow_status" ("queue_name", "started_at_epoch_ms") WHERE "rate_limited" = TRUE;
CREATE INDEX "idx_workflow_status_completed_at" ON "workflow_status" ("completed_at") WHERE "completed_at" IS NOT NULL;
CREATE INDEX "idx_workflow_status_started_at" ON "workflow_status" ("started_at_epoch_ms") WHERE "started_at_epoch_ms" IS NOT NULL;
CREATE INDEX "idx_workflow_status_schedule_name" ON "workflow_status" ("schedule_name") WHERE "schedule_name" IS NOT NULL;
CREATE UNIQUE INDEX "uq_application_versions_owner_version"
    ON application_versions ("application_name", "version_name")
    WHERE "application_name" IS NOT NULL;
CREATE UNIQUE INDEX "uq_application_versions_unclaimed_version"
    ON application_versions ("version_name")
    WHERE "application_name" IS NULL;
CREATE INDEX idx_workflow_input_retention
    ON workflow_input (retention_timestamp);
CREATE INDEX idx_workflow_output_retention
    ON workflow_output (retention_timestamp);
CREATE INDEX idx_operation_outputs_retention
    ON operation_outputs (retention_timestamp);
CREATE INDEX "idx_workflow_status_in_flight_v2" ON "workflow_status" ("queue_name", "status", "priority", "created_at", "application_name") WHERE "status" IN ('ENQUEUED', 'PENDING');
CREATE INDEX "idx_workflow_status_partition_dequeue_v3" ON "workflow_status" ("queue_name", "status", "queue_partition_key", "priority", "created_at", "workflow_uuid", "application_name") WHERE "status" IN ('ENQUEUED', 'PENDING') AND "queue_partition_key" IS NOT NULL;
CREATE INDEX "idx_operation_outputs_completed_at_function_name_v2" ON "operation_outputs" ("completed_at_epoch_ms", "function_name", "application_name");
CREATE INDEX "idx_workflow_status_deadline" ON "workflow_status" ("workflow_deadline_epoch_ms") WHERE "status" IN ('ENQUEUED', 'PENDING', 'DELAYED') AND "workflow_deadline_epoch_ms" IS NOT NULL;
CREATE INDEX "idx_application_versions_timestamp" ON "application_versions" ("version_timestamp" DESC);
CREATE INDEX "idx_application_versions_owner_timestamp" ON "application_versions" ("application_name", "version_timestamp" DESC);
CREATE INDEX memory_by_time ON memory (at);
COMMIT;
