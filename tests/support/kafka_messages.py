"""The messages that the tests speak, field by field in the order of the wire. kafka_wire.py reads these tables.

A line is a field: NAME TYPE [VERSIONS] [null VERSIONS] [tag N] [= DEFAULT]. Indented lines below `{}` (a struct) or
`[]` (an array of structs) are its fields; `[]int32` is an array of plain values. VERSIONS is `4+`, `0-3` or `7`, and
all versions where nothing is said. A number that is left out is 0, a string "", an array empty, unless a default says
otherwise.
"""

# Name: (key, highest version, first flexible version, request fields, response fields). 999: never flexible.
MESSAGES = {}


def _api(name, key, newest, flexible, request, response):
    MESSAGES[name] = (key, newest, flexible, request, response)


_api("Produce", 0, 13, 9, """
transactional_id string 3+ null 3+ = null
acks int16 = -1
timeout_ms int32 = 30000
topic_data []
  name string 0-12
  topic_id uuid 13+
  partition_data []
    index int32
    records records null 0+
""", """
responses []
  name string 0-12
  topic_id uuid 13+
  partition_responses []
    index int32
    error_code int16
    base_offset int64
    log_append_time_ms int64 2+ = -1
    log_start_offset int64 5+ = -1
    record_errors [] 8+
      batch_index int32
      batch_index_error_message string null 8+ = null
    error_message string 8+ null 8+ = null
    current_leader {} 10+ tag 0
      leader_id int32 = -1
      leader_epoch int32 = -1
throttle_time_ms int32 1+
node_endpoints [] 10+ tag 0
  node_id int32
  host string
  port int32
  rack string null 10+ = null
""")

_api("Fetch", 1, 18, 12, """
cluster_id string 12+ null 12+ tag 0
replica_id int32 0-14 = -1
replica_state {} 15+ tag 1
  replica_id int32 = -1
  replica_epoch int64 = -1
max_wait_ms int32 = 500
min_bytes int32 = 1
max_bytes int32 = 52428800
isolation_level int8
session_id int32 7+
session_epoch int32 7+ = -1
topics []
  topic string 0-12
  topic_id uuid 13+
  partitions []
    partition int32
    current_leader_epoch int32 9+ = -1
    fetch_offset int64
    last_fetched_epoch int32 12+ = -1
    log_start_offset int64 5+ = -1
    partition_max_bytes int32 = 1048576
    replica_directory_id uuid 17+ tag 0
    high_watermark int64 18+ tag 1
forgotten_topics_data [] 7+
  topic string 7-12
  topic_id uuid 13+
  partitions []int32
rack_id string 11+
""", """
throttle_time_ms int32
error_code int16 7+
session_id int32 7+
responses []
  topic string 0-12
  topic_id uuid 13+
  partitions []
    partition_index int32
    error_code int16
    high_watermark int64
    last_stable_offset int64 = -1
    log_start_offset int64 5+ = -1
    diverging_epoch {} 12+ tag 0
      epoch int32 = -1
      end_offset int64 = -1
    current_leader {} 12+ tag 1
      leader_id int32 = -1
      leader_epoch int32 = -1
    snapshot_id {} 12+ tag 2
      end_offset int64 = -1
      epoch int32 = -1
    aborted_transactions [] null 4+
      producer_id int64
      first_offset int64
    preferred_read_replica int32 11+ = -1
    records records null 0+
node_endpoints [] 16+ tag 0
  node_id int32
  host string
  port int32
  rack string null 16+ = null
""")

_api("ListOffsets", 2, 11, 6, """
replica_id int32 = -1
isolation_level int8 2+
topics []
  name string
  partitions []
    partition_index int32
    current_leader_epoch int32 4+ = -1
    timestamp int64 = -1
timeout_ms int32 10+ = 30000
""", """
throttle_time_ms int32 2+
topics []
  name string
  partitions []
    partition_index int32
    error_code int16
    timestamp int64 = -1
    offset int64 = -1
    leader_epoch int32 4+ = -1
""")

_api("Metadata", 3, 13, 9, """
topics [] null 1+ = null
  topic_id uuid 10+
  name string null 10+
allow_auto_topic_creation bool 4+
include_cluster_authorized_operations bool 8-10
include_topic_authorized_operations bool 8+
""", """
throttle_time_ms int32 3+
brokers []
  node_id int32
  host string
  port int32
  rack string 1+ null 1+ = null
cluster_id string 2+ null 2+ = null
controller_id int32 1+ = -1
topics []
  error_code int16
  name string null 12+
  topic_id uuid 10+
  is_internal bool 1+
  partitions []
    error_code int16
    partition_index int32
    leader_id int32
    leader_epoch int32 7+ = -1
    replica_nodes []int32
    isr_nodes []int32
    offline_replicas []int32 5+
  topic_authorized_operations int32 8+ = -2147483648
cluster_authorized_operations int32 8-10 = -2147483648
error_code int16 13+
""")

_api("FindCoordinator", 10, 6, 3, """
key string 0-3
key_type int8 1+
coordinator_keys []string 4+
""", """
throttle_time_ms int32 1+
error_code int16 0-3
error_message string 1-3 null 1-3 = null
node_id int32 0-3
host string 0-3
port int32 0-3
coordinators [] 4+
  key string
  node_id int32
  host string
  port int32
  error_code int16
  error_message string null 4+ = null
""")

_api("SaslHandshake", 17, 1, 999, """
mechanism string
""", """
error_code int16
mechanisms []string
""")

_api("ApiVersions", 18, 5, 3, """
client_software_name string 3+ = mirrorpid-tests
client_software_version string 3+ = 1
cluster_id string 5+ null 5+ = null
node_id int32 5+ = -1
""", """
error_code int16
api_keys []
  api_key int16
  min_version int16
  max_version int16
throttle_time_ms int32 1+
supported_features [] 3+ tag 0
  name string
  min_version int16
  max_version int16
finalized_features_epoch int64 3+ tag 1
finalized_features [] 3+ tag 2
  name string
  max_version_level int16
  min_version_level int16
zk_migration_ready bool 3+ tag 3
""")

_api("CreateTopics", 19, 7, 5, """
topics []
  name string
  num_partitions int32 = -1
  replication_factor int16 = -1
  assignments []
    partition_index int32
    broker_ids []int32
  configs []
    name string
    value string null 0+
timeout_ms int32 = 30000
validate_only bool 1+
""", """
throttle_time_ms int32 2+
topics []
  name string
  topic_id uuid 7+
  error_code int16
  error_message string 1+ null 1+ = null
  topic_config_error_code int16 5+ tag 0
  num_partitions int32 5+ = -1
  replication_factor int16 5+ = -1
  configs [] 5+ null 5+
    name string
    value string null 5+
    read_only bool
    config_source int8 = -1
    is_sensitive bool
""")

_api("DeleteTopics", 20, 5, 4, """
topic_names []string
timeout_ms int32 = 30000
""", """
throttle_time_ms int32 1+
responses []
  name string
  error_code int16
  error_message string 5+ null 5+ = null
""")

_api("InitProducerId", 22, 6, 2, """
transactional_id string null 0+ = null
transaction_timeout_ms int32 = 60000
producer_id int64 3+ = -1
producer_epoch int16 3+ = -1
enable_2pc bool 6+
keep_prepared_txn bool 6+
""", """
throttle_time_ms int32
error_code int16
producer_id int64 = -1
producer_epoch int16
ongoing_txn_producer_id int64 6+ = -1
ongoing_txn_producer_epoch int16 6+ = -1
""")

_api("CreateAcls", 30, 3, 2, """
creations []
  resource_type int8
  resource_name string
  resource_pattern_type int8 1+ = 3
  principal string
  host string
  operation int8
  permission_type int8
""", """
throttle_time_ms int32
results []
  error_code int16
  error_message string null 0+
""")

_api("DescribeConfigs", 32, 4, 4, """
resources []
  resource_type int8
  resource_name string
  configuration_keys []string null 0+
include_synonyms bool 1+
include_documentation bool 3+
""", """
throttle_time_ms int32
results []
  error_code int16
  error_message string null 0+
  resource_type int8
  resource_name string
  configs []
    name string
    value string null 0+
    read_only bool
    is_default bool 0
    config_source int8 1+ = -1
    is_sensitive bool
    synonyms [] 1+
      name string
      value string null 0+
      source int8
    config_type int8 3+
    documentation string 3+ null 3+
""")

_api("SaslAuthenticate", 36, 2, 2, """
auth_bytes bytes
""", """
error_code int16
error_message string null 0+ = null
auth_bytes bytes
session_lifetime_ms int64 1+
""")

_api("ElectLeaders", 43, 2, 2, """
election_type int8 1+
topic_partitions [] null 0+ = null
  topic string
  partitions []int32
timeout_ms int32 = 60000
""", """
throttle_time_ms int32
error_code int16 1+
replica_election_results []
  topic string
  partition_result []
    partition_id int32
    error_code int16
    error_message string null 0+ = null
""")

_api("DescribeCluster", 60, 2, 0, """
include_cluster_authorized_operations bool
endpoint_type int8 1+ = 1
include_fenced_brokers bool 2+
""", """
throttle_time_ms int32
error_code int16
error_message string null 0+ = null
endpoint_type int8 1+ = 1
cluster_id string
controller_id int32 = -1
brokers []
  broker_id int32
  host string
  port int32
  rack string null 0+ = null
  is_fenced bool 2+
cluster_authorized_operations int32 = -2147483648
""")

_api("ShareFetch", 78, 2, 0, """
group_id string null 0+ = null
member_id string null 0+
share_session_epoch int32
max_wait_ms int32 = 500
min_bytes int32 = 1
max_bytes int32 = 52428800
max_records int32 = 500
batch_size int32 = 500
share_acquire_mode int8 2+
is_renew_ack bool 2+
topics []
  topic_id uuid
  partitions []
    partition_index int32
    partition_max_bytes int32 0
    acknowledgement_batches []
      first_offset int64
      last_offset int64
      acknowledge_types []int8
forgotten_topics_data []
  topic_id uuid
  partitions []int32
""", """
throttle_time_ms int32
error_code int16
error_message string null 0+ = null
acquisition_lock_timeout_ms int32
responses []
  topic_id uuid
  partitions []
    partition_index int32
    error_code int16
    error_message string null 0+ = null
    acknowledge_error_code int16
    acknowledge_error_message string null 0+ = null
    current_leader {}
      leader_id int32 = -1
      leader_epoch int32 = -1
    records records null 0+
    acquired_records []
      first_offset int64
      last_offset int64
      delivery_count int16
node_endpoints []
  node_id int32
  host string
  port int32
  rack string null 0+ = null
""")

_api("ShareAcknowledge", 79, 2, 0, """
group_id string null 0+ = null
member_id string null 0+
share_session_epoch int32
is_renew_ack bool 2+
topics []
  topic_id uuid
  partitions []
    partition_index int32
    acknowledgement_batches []
      first_offset int64
      last_offset int64
      acknowledge_types []int8
""", """
throttle_time_ms int32
error_code int16
error_message string null 0+ = null
acquisition_lock_timeout_ms int32 2+
responses []
  topic_id uuid
  partitions []
    partition_index int32
    error_code int16
    error_message string null 0+ = null
    current_leader {}
      leader_id int32 = -1
      leader_epoch int32 = -1
node_endpoints []
  node_id int32
  host string
  port int32
  rack string null 0+ = null
""")
