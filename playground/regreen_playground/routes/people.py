"""What somebody who signed in to an App may see through it: its installations, and their repositories."""

from __future__ import annotations

from regreen_playground.routes.wire import Api, Call, counted
from regreen_playground.shape import apps as shape
from regreen_playground.shape.people import permission_flags, repository
from regreen_playground.things import Installation, Repository, User
from regreen_playground.world import Refused, World, level


def routes(world: World) -> Api:
    """The routes."""
    api = Api(world, "people")

    @api.plain("GET", "/user/installations")
    def installations(call: Call) -> object:
        found = [one for one in _mine(call) if _repositories(call.world, one, call.user)]
        return counted("installations", [shape.installation(call.world, one) for one in found])

    @api.plain("GET", "/user/installations/<int:number>/repositories")
    def repositories(call: Call, number: int) -> object:
        one = next((one for one in _mine(call) if one.id == number), None)
        if one is None:
            raise Refused(404, "Not Found")
        shown = [
            {**repository(call.world, r), "permissions": permission_flags(level(r, call.user))}
            for r in _repositories(call.world, one, call.user)
        ]
        chosen = "all" if one.repositories is None else "selected"
        return counted("repositories", shown, repository_selection=chosen)

    return api


def _mine(call: Call) -> list[Installation]:
    """The installations of the App that the person signed in to.

    Raises:
        Refused: the token was not given through an App (403).
    """
    if call.caller.through is None:
        raise Refused(
            403,
            "You must authenticate with an access token authorized to a GitHub App in order to list installations",
        )
    return [o for o in call.world.installations.values() if o.app is call.caller.through]


def _repositories(world: World, one: Installation, user: User) -> list[Repository]:
    """Those where the person was given a right; that a repository is public gives none."""
    return [
        r
        for r in world.repositories.values()
        if one.covers(r) and (user is r.owner or user.login.lower() in r.collaborators)
    ]
