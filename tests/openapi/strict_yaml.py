"""Reads YAML as strictly as the strictest readers."""
import yaml


class StrictLoader(yaml.SafeLoader):
    """Refuses what strict readers and generators refuse: duplicate keys, and a key without a value (what a
    comma in unquoted text leaves behind)."""

    def construct_mapping(self, node, deep=False):
        keys = set()
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if key in keys:
                raise ValueError(f"line {line}: {key!r} stands twice")
            if value_node.tag.endswith(":null") and value_node.value == "":
                raise ValueError(f"line {line}: {key!r} has no value; quote text that has a comma")
            keys.add(key)
        return super().construct_mapping(node, deep)
