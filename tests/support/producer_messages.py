"""The messages that carry producer ids outside of record batches, in the form of kafka_messages.py, but for
InitProducerId, which is there."""

MESSAGES = {}


def _api(name, key, newest, flexible, request, response):
    MESSAGES[name] = (key, newest, flexible, request, response)


_api("AddPartitionsToTxn", 24, 5, 3, """
transactions [] 4+
  transactional_id string
  producer_id int64
  producer_epoch int16
  verify_only bool
  topics []
    name string
    partitions []int32
transactional_id string 0-3
producer_id int64 0-3
producer_epoch int16 0-3
topics [] 0-3
  name string
  partitions []int32
""", """
throttle_time_ms int32
error_code int16 4+
results_by_transaction [] 4+
  transactional_id string
  topic_results []
    name string
    results_by_partition []
      partition_index int32
      partition_error_code int16
results_by_topic [] 0-3
  name string
  results_by_partition []
    partition_index int32
    partition_error_code int16
""")

_api("AddOffsetsToTxn", 25, 4, 3, """
transactional_id string
producer_id int64
producer_epoch int16
group_id string
""", """
throttle_time_ms int32
error_code int16
""")

_api("EndTxn", 26, 5, 3, """
transactional_id string
producer_id int64
producer_epoch int16
committed bool
""", """
throttle_time_ms int32
error_code int16
producer_id int64 5+ = -1
producer_epoch int16 5+ = -1
""")

_api("WriteTxnMarkers", 27, 2, 1, """
markers []
  producer_id int64
  producer_epoch int16
  transaction_result bool
  topics []
    name string
    partition_indexes []int32
  coordinator_epoch int32
  transaction_version int8 2+
""", """
markers []
  producer_id int64
  topics []
    name string
    partitions []
      partition_index int32
      error_code int16
""")

_api("TxnOffsetCommit", 28, 6, 3, """
transactional_id string
group_id string
producer_id int64
producer_epoch int16
generation_id_or_member_epoch int32 3+ = -1
member_id string 3+
group_instance_id string 3+ null 3+ = null
topics []
  name string 0-5
  topic_id uuid 6+
  partitions []
    partition_index int32
    committed_offset int64
    committed_leader_epoch int32 2+ = -1
    committed_metadata string null 0+ = null
""", """
throttle_time_ms int32
topics []
  name string 0-5
  topic_id uuid 6+
  partitions []
    partition_index int32
    error_code int16
""")

_api("DescribeProducers", 61, 0, 0, """
topics []
  name string
  partition_indexes []int32
""", """
throttle_time_ms int32
topics []
  name string
  partitions []
    partition_index int32
    error_code int16
    error_message string null 0+ = null
    active_producers []
      producer_id int64
      producer_epoch int32
      last_sequence int32 = -1
      last_timestamp int64 = -1
      coordinator_epoch int32
      current_txn_start_offset int64 = -1
""")

_api("DescribeTransactions", 65, 0, 0, """
transactional_ids []string
""", """
throttle_time_ms int32
transaction_states []
  error_code int16
  transactional_id string
  transaction_state string
  transaction_timeout_ms int32
  transaction_start_time_ms int64
  producer_id int64
  producer_epoch int16
  topics []
    topic string
    partitions []int32
""")

_api("ListTransactions", 66, 2, 0, """
state_filters []string
producer_id_filters []int64
duration_filter int64 1+ = -1
transactional_id_pattern string 2+ null 2+ = null
""", """
throttle_time_ms int32
error_code int16
unknown_state_filters []string
transaction_states []
  transactional_id string
  producer_id int64
  transaction_state string
""")
