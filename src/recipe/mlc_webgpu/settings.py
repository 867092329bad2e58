"""Holds a model's configuration against the settings that must stay as they are.
arguments: CONFIG KEY=NUMBER…"""
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    config = json.load(file)
for setting in sys.argv[2:]:
    key, number = setting.split("=")
    found = config.get(key, config.get("model_config", {}).get(key))
    if found != int(number):
        sys.exit(f"the configuration has {key} {found}, and the pins say {number}")
