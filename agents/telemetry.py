"""Every name that leaves us as telemetry: of spans, attributes, metrics and the variables that turn
it on. Nothing else in the project spells one.

Attributes without `headway.` are those of OpenTelemetry's semantic conventions, version 1.38:
messaging (https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/) and generative AI
(https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-agent-spans/). The variables are those of
https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/; only
HEADWAY_LOG_FORMAT is ours.
"""

from __future__ import annotations

SCOPE = "headway"
SERVICE_NAME = "service.name"
SERVICE_INSTANCE_ID = "service.instance.id"
SERVICE_VERSION = "service.version"

# Spans, by what they are. An attempt's, a wait's and a call's name is completed by what it is of.
TASK_SPAN = "invoke_workflow"
ATTEMPT_SPAN = "invoke_agent"
CHILD_SPAN = "child"
WAIT_SPAN = "wait"
HOLD_SPAN = "hold"
TOOL_SPAN = "execute_tool"
MODEL_SPAN = "chat"
BATCH_SPAN = "commit batch"

TASK = "headway.task"
SAGA = "headway.saga"
SAGA_VERSION = "headway.saga.version"
STATUS = "headway.status"
OWNER = "headway.owner"
STEP = "headway.step"
STEP_KIND = "headway.step.kind"
PHASE = "headway.phase"
ATTEMPT = "headway.attempt"
OUTCOME = "headway.outcome"
WORKER = "headway.worker"
TAKE_OVERS = "headway.take_overs"
EPOCH = "headway.epoch"
CHILD = "headway.child"
REASON = "headway.reason"
KEY = "headway.call.key"
MODEL_CALL = "headway.call.model"
COST = "headway.call.cost_usd"
DIGEST = "headway.call.arguments_digest"
RESULT_DIGEST = "headway.call.result_digest"
VERSION = "headway.version"
EVENTS = "headway.events"
EVENT = "headway.event"
ENTRY = "headway.entry"
SEQ = "headway.entry.seq"
BYTES = "headway.entry.bytes"
BY = "headway.by"
ITEMS = "headway.batch.items"
INPUT_DIGEST = "headway.input_digest"
LINKED_AS = "headway.link"  # what a link leads to: submitter, parent, child, undoes, task

ERROR_TYPE = "error.type"
MESSAGING_SYSTEM = "messaging.system"
MESSAGING_OPERATION_TYPE = "messaging.operation.type"
MESSAGING_OPERATION_NAME = "messaging.operation.name"
MESSAGING_DESTINATION = "messaging.destination.name"
MESSAGING_DESTINATION_TEMPLATE = "messaging.destination.template"
MESSAGING_BATCH = "messaging.batch.message_count"
GEN_AI_OPERATION = "gen_ai.operation.name"
GEN_AI_PROVIDER = "gen_ai.provider.name"
GEN_AI_REQUEST_MODEL = "gen_ai.request.model"
GEN_AI_AGENT = "gen_ai.agent.name"
GEN_AI_WORKFLOW = "gen_ai.workflow.name"
GEN_AI_TOOL = "gen_ai.tool.name"
GEN_AI_TOOL_TYPE = "gen_ai.tool.type"
GEN_AI_CALL = "gen_ai.tool.call.id"
GEN_AI_ARGUMENTS = "gen_ai.tool.call.arguments"
GEN_AI_RESULT = "gen_ai.tool.call.result"
GEN_AI_INPUT_TOKENS = "gen_ai.usage.input_tokens"
GEN_AI_OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
GEN_AI_TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 - input or output

# What turns telemetry on, and what shapes it.
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
OTLP = "OTEL_EXPORTER_OTLP_"  # + {,TRACES_,METRICS_,LOGS_}{ENDPOINT,HEADERS,TIMEOUT,…}
DISABLED = "OTEL_SDK_DISABLED"
EXPORTER = "OTEL_{}_EXPORTER"  # TRACES, METRICS, LOGS: otlp or none
SERVICE = "OTEL_SERVICE_NAME"
RESOURCE = "OTEL_RESOURCE_ATTRIBUTES"
SAMPLER = "OTEL_TRACES_SAMPLER"
SAMPLER_ARG = "OTEL_TRACES_SAMPLER_ARG"
SCHEDULE_DELAY = "OTEL_BSP_SCHEDULE_DELAY"
EXPORT_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
PAYLOADS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
LOG_FORMAT = "HEADWAY_LOG_FORMAT"
JSON = "json"  # its value for JSON lines
RECORDS_LOGGER = "headway.records"  # which writes them for changes of state

# Metrics. In Prometheus a dot is an underscore, and unit and `_total` follow.
TASKS_SUBMITTED = "headway.tasks.submitted"
TASKS_ENDED = "headway.tasks.ended"
TASKS_PARKED = "headway.tasks.parked"
TASKS_RESUMED = "headway.tasks.resumed"
TASKS_TURNED_AROUND = "headway.tasks.turned_around"
TASK_DURATION = "headway.task.duration"
ATTEMPTS_ENDED = "headway.attempts.ended"
ATTEMPT_DURATION = "headway.attempt.duration"
FAILURES = "headway.attempts.failures"
RETRIES = "headway.attempts.retries"
RECOVERIES = "headway.recoveries"
CALLS = "headway.calls"
TOKENS = "headway.tokens"
COSTS = "headway.cost"
COMMITS = "headway.commits"
COMMIT_DURATION = "headway.commit.duration"
COMMIT_ITEMS = "headway.commit.items"
TASKS = "headway.tasks"
TASKS_WAITING = "headway.tasks.waiting"
QUEUE_AGE = "headway.queue.age"
AGENTS = "headway.agents"
INSTANCES = "headway.agent.instances"
SPANS_DROPPED = "headway.telemetry.dropped"

# What metrics are told apart by, beside the attributes above.
AGENT = "headway.agent"
HOW = "headway.recovery"  # claimed, republished
QUEUE = "headway.queue"  # commands, timers
SIGNAL = "headway.signal"  # spans, logs
