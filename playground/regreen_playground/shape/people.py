"""Users and repositories as GitHub's JSON shows them."""

from __future__ import annotations

from datetime import datetime

from regreen_playground.things import Json, Repository, User
from regreen_playground.world import World

_USER_URLS = {
    "followers_url": "/followers",
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "subscriptions_url": "/subscriptions",
    "organizations_url": "/orgs",
    "repos_url": "/repos",
    "events_url": "/events{/privacy}",
    "received_events_url": "/received_events",
}
_REPOSITORY_URLS = {
    "archive_url": "/{archive_format}{/ref}",
    "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}",
    "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}",
    "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}",
    "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}",
    "contributors_url": "/contributors",
    "deployments_url": "/deployments",
    "downloads_url": "/downloads",
    "events_url": "/events",
    "forks_url": "/forks",
    "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}",
    "git_tags_url": "/git/tags{/sha}",
    "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}",
    "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}",
    "keys_url": "/keys{/key_id}",
    "labels_url": "/labels{/name}",
    "languages_url": "/languages",
    "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}",
    "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}",
    "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}",
    "subscribers_url": "/subscribers",
    "subscription_url": "/subscription",
    "tags_url": "/tags",
    "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}


def when(moment: datetime) -> str:
    """A time as GitHub writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def maybe(moment: datetime | None) -> str | None:
    """A time as GitHub writes it, or null."""
    return when(moment) if moment else None


def user(world: World, one: User) -> Json:
    """A simple user."""
    url = f"{world.api_url}/users/{one.login}"
    return {
        "login": one.login,
        "id": one.id,
        "node_id": f"U_{one.id}",
        "avatar_url": f"{world.web_url}/avatars/{one.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{world.web_url}/{one.login}",
        **{key: url + suffix for key, suffix in _USER_URLS.items()},
        "type": one.type,
        "user_view_type": "public",
        "site_admin": False,
    }


def maybe_user(world: World, one: User | None) -> Json | None:
    """A simple user, or null."""
    return user(world, one) if one else None


def full_user(world: World, one: User) -> Json:
    """A public user with the profile."""
    return {
        **user(world, one),
        "name": one.name,
        "company": None,
        "blog": "",
        "location": None,
        "email": one.email,
        "hireable": None,
        "bio": None,
        "twitter_username": None,
        "public_repos": 0,
        "public_gists": 0,
        "followers": 0,
        "following": 0,
        "created_at": when(one.created),
        "updated_at": when(one.created),
    }


def repository(world: World, one: Repository) -> Json:
    """A repository as pulls, events and lists hold it."""
    url = f"{world.api_url}/repos/{one.full_name}"
    html = f"{world.web_url}/{one.full_name}"
    host = world.web_url.partition("://")[2]
    unresolved = sum(issue.state == "open" for issue in one.issues.values())
    return {
        "id": one.id,
        "node_id": f"R_{one.id}",
        "name": one.name,
        "full_name": one.full_name,
        "private": one.private,
        "owner": user(world, one.owner),
        "html_url": html,
        "description": one.description,
        "fork": one.parent is not None,
        "url": url,
        **{key: url + suffix for key, suffix in _REPOSITORY_URLS.items()},
        "git_url": f"git://{host}/{one.full_name}.git",
        "ssh_url": f"ssh://git@{host}/{one.full_name}.git",
        "clone_url": f"{html}.git",
        "svn_url": html,
        "mirror_url": None,
        "homepage": None,
        "language": "Python",
        "forks": 0,
        "forks_count": 0,
        "stargazers_count": 0,
        "watchers": 0,
        "watchers_count": 0,
        "size": 0,
        "default_branch": one.default_branch,
        "open_issues": unresolved,
        "open_issues_count": unresolved,
        "is_template": False,
        "topics": [],
        "has_issues": True,
        "has_projects": True,
        "has_wiki": True,
        "has_pages": False,
        "has_downloads": True,
        "has_discussions": False,
        "archived": one.archived,
        "disabled": False,
        "visibility": "private" if one.private else "public",
        "license": None,
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "pushed_at": when(world.now()),
        "created_at": when(one.created),
        "updated_at": when(world.now()),
    }


def full_repository(world: World, one: Repository) -> Json:
    """A repository asked for by name."""
    more: Json = {
        "allow_rebase_merge": True,
        "allow_squash_merge": True,
        "allow_merge_commit": True,
        "allow_auto_merge": False,
        "delete_branch_on_merge": False,
        "network_count": 0,
        "subscribers_count": 0,
        "temp_clone_token": None,
    }
    if one.parent is not None:
        more["parent"] = more["source"] = repository(world, one.parent)
    return {**repository(world, one), **more}


def permission_flags(word: str) -> Json:
    """The five booleans that go with a permission."""
    order = ("pull", "triage", "push", "maintain", "admin")
    reach = {"none": 0, "read": 1, "triage": 2, "write": 3, "maintain": 4, "admin": 5}[word]
    return {flag: index < reach for index, flag in enumerate(order)}
