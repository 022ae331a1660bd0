"""docker-compose.yml as docker compose reads it: variables filled in, services of a profile."""
import os
import re

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILE = f"{ROOT}/docker-compose.yml"


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


def load(profile=None, environment=None):
    """The file; with a profile, only its services."""
    with open(FILE, encoding="utf-8") as file:
        project = filled(yaml.safe_load(file), environment or {})
    if profile:
        project["services"] = {name: one for name, one in project["services"].items() if profile in one["profiles"]}
    return project


def networks(service):
    """{network: aliases} of a service."""
    there = service.get("networks", ["default"])
    return {name: [] for name in there} if isinstance(there, list) else {
        name: (one or {}).get("aliases", []) for name, one in there.items()}


def component(name):
    """auth-2 → auth, as in the table of callers."""
    base = re.sub(r"-\d+$", "", name)
    return {"router": "inference-router", "postgres": "postgresql", "prometheus-minimal": "prometheus"}.get(base, base)


def seconds(text):
    return sum(float(number) * {"s": 1, "m": 60}[unit] for number, unit in re.findall(r"(\d+)([sm])", text))
