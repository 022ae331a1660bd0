"""Reads docker-compose.yml like docker compose, for the profiles "ha" and "scale" with their files: variables filled in, services
of a profile."""
import os
import re

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE = f"{ROOT}/docker-compose.yml"
OVERLAYS = {profile: f"{ROOT}/docker-compose.{profile}.yml" for profile in ("ha", "scale")}


class Override(dict):
    """!override: replaces the value of the previous file."""


class Loader(yaml.SafeLoader):
    pass


Loader.add_constructor("!override", lambda loader, node: Override(loader.construct_mapping(node, deep=True)))


def read(path):
    with open(path, encoding="utf-8") as file:
        return yaml.load(file, Loader)  # a safe loader


def fill(text, environment):
    """${NAME}, ${NAME:-default}, where the default may have variables itself, and $$."""
    out, place = "", 0
    while place < len(text):
        if text.startswith("$$", place):
            out, place = out + "$", place + 2
        elif text.startswith("${", place):
            depth, end = 1, place + 2
            while depth:
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
            name, _, otherwise = text[place + 2:end - 1].partition(":-")
            if not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
                raise ValueError(f"not understood: {text[place:end]}")
            out, place = out + (environment.get(name) or fill(otherwise, environment)), end
        else:
            out, place = out + text[place], place + 1
    return out


def filled(value, environment):
    if isinstance(value, str):
        return fill(value, environment)
    if isinstance(value, dict):
        return {key: filled(one, environment) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, environment) for one in value]
    return value


def merged(base, over, what=""):
    """Two files as one. A command replaces the previous one, and a mount the one with the same target; other lists are joined."""
    if isinstance(base, list) and what != "command":
        if not isinstance(over, list):
            raise ValueError(f"not understood: {base} and {over}")
        taken = {place(one) for one in over} if what == "volumes" else set()
        return [one for one in base if place(one) not in taken] + over
    if not isinstance(over, dict) or isinstance(over, Override) or not isinstance(base, dict):
        return over
    return {**base, **{key: merged(base[key], one, key) if key in base else one for key, one in over.items()}}


def place(mount):
    """Path in the container."""
    return mount.removesuffix(":ro").rpartition(":")[2]


def files(profiles):
    return [FILE, *(OVERLAYS[one] for one in profiles.split(",") if one in OVERLAYS)]


def load(profiles="", environment=None):
    """The project; with profiles ("full", "scale,citus-3"), only their services, and with the file of the profile."""
    project = {}
    for path in files(profiles):
        project = merged(project, read(path))
    project = filled(project, environment or {})
    if profiles:
        project["services"] = {name: one for name, one in project["services"].items() if set(profiles.split(",")) & set(one["profiles"])}
    return project


def networks(service):
    """{network: aliases} of a service."""
    there = service.get("networks", ["default"])
    return {name: [] for name in there} if isinstance(there, list) else {
        name: (one or {}).get("aliases", []) for name, one in there.items()}


def component(name):
    """auth-2 → auth, as in the table of callers."""
    base = re.sub(r"-\d+$", "", name)
    return {"router": "inference-router", "postgres": "postgresql", "sentinel": "redis", "prometheus-minimal": "prometheus"}.get(base, base)


def seconds(text):
    return sum(float(number) * {"s": 1, "m": 60}[unit] for number, unit in re.findall(r"(\d+)([sm])", text))
