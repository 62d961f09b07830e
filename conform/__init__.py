"""The conformance kit: a stand-in for coordinators that drives one agent through the agent
contract (agents/asyncapi.yaml) on a nats-server of its own, and tells what holds and what does not.
"""
