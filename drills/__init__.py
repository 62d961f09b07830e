"""Drills: faults caused on purpose in a running system, and a report of what recovered.

A drill works with a saga and agents of its own, which it starts and ends; nothing of the user's is
touched, except by the faults that are asked for with `--staging`.
"""
