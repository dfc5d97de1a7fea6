#pragma once
#include <array>

#include "codec/producer_messages.hpp"
#include "codec/schema.hpp"

// The messages that the proxy looks into, in the order and with the names of Kafka's own definitions. A version that
// is not here is never read by guess: see Api::served.
namespace codec {

inline constexpr Field node_endpoint[] = {
    {"NodeId", Type::int32, {}, Role::node_id},
    {"Host", Type::string, {}, Role::host},
    {"Port", Type::int32, {}, Role::port},
    {"Rack", Type::string},
};
inline constexpr Field leader_and_epoch[] = {
    {"LeaderId", Type::int32},
    {"LeaderEpoch", Type::int32},
};

namespace headers {
inline constexpr Field request_fields[] = {{"ClientId", Type::classic_string}};
// Behind api_key, api_version and correlation_id, which codec/frame.hpp lays over the bytes.
inline constexpr Message request{"RequestHeader", -1, {1, 2}, 2, request_fields};
inline constexpr Message response{"ResponseHeader", -1, {0, 1}, 1, {}};
}  // namespace headers

namespace produce {  // 0
inline constexpr Field request_partition[] = {
    {"Index", Type::int32, {}, Role::partition},
    {"Records", Type::records, {}, Role::records},
};
inline constexpr Field request_topic[] = {
    {"Name", Type::string, until(12), Role::topic_name},
    {"TopicId", Type::uuid, since(13), Role::topic_id},
    {"PartitionData", Type::structs, {}, Role::none, request_partition},
};
inline constexpr Field request_fields[] = {
    {"TransactionalId", Type::string, since(3)},
    {"Acks", Type::int16, {}, Role::acks},
    {"TimeoutMs", Type::int32},
    {"TopicData", Type::structs, {}, Role::none, request_topic},
};
// From 0: brokers before 4.0 take batches of magic 2 in version 2, and all brokers claim a minimum of 0.
inline constexpr Message request{"ProduceRequest", 0, {0, 13}, 9, request_fields};

inline constexpr Field record_error[] = {
    {"BatchIndex", Type::int32},
    {"BatchIndexErrorMessage", Type::string},
};
inline constexpr Field response_partition[] = {
    {"Index", Type::int32, {}, Role::partition},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"BaseOffset", Type::int64},
    {"LogAppendTimeMs", Type::int64, since(2)},
    {"LogStartOffset", Type::int64, since(5)},
    {"RecordErrors", Type::structs, since(8), Role::none, record_error},
    {"ErrorMessage", Type::string, since(8)},
    {"CurrentLeader", Type::structure, since(10), Role::none, leader_and_epoch, 0},
};
inline constexpr Field response_topic[] = {
    {"Name", Type::string, until(12), Role::topic_name},
    {"TopicId", Type::uuid, since(13), Role::topic_id},
    {"PartitionResponses", Type::structs, {}, Role::none, response_partition},
};
inline constexpr Field response_fields[] = {
    {"Responses", Type::structs, {}, Role::none, response_topic},
    {"ThrottleTimeMs", Type::int32, since(1)},
    {"NodeEndpoints", Type::structs, since(10), Role::endpoints, node_endpoint, 0},
};
inline constexpr Message response{"ProduceResponse", 0, {0, 13}, 9, response_fields};
}  // namespace produce

namespace fetch {  // 1
inline constexpr Field epoch_end_offset[] = {
    {"Epoch", Type::int32},
    {"EndOffset", Type::int64},
};
inline constexpr Field snapshot_id[] = {
    {"EndOffset", Type::int64},
    {"Epoch", Type::int32},
};
inline constexpr Field aborted_transaction[] = {
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"FirstOffset", Type::int64},
};
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32, {}, Role::partition},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"HighWatermark", Type::int64},
    {"LastStableOffset", Type::int64, since(4)},
    {"LogStartOffset", Type::int64, since(5)},
    {"AbortedTransactions", Type::structs, since(4), Role::none, aborted_transaction},
    {"PreferredReadReplica", Type::int32, since(11)},
    {"Records", Type::records, {}, Role::records},
    {"DivergingEpoch", Type::structure, since(12), Role::none, epoch_end_offset, 0},
    {"CurrentLeader", Type::structure, since(12), Role::none, leader_and_epoch, 1},
    {"SnapshotId", Type::structure, since(12), Role::none, snapshot_id, 2},
};
inline constexpr Field topic[] = {
    {"Topic", Type::string, until(12), Role::topic_name},
    {"TopicId", Type::uuid, since(13), Role::topic_id},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32, since(1)},
    {"ErrorCode", Type::int16, since(7), Role::error_code},
    {"SessionId", Type::int32, since(7)},
    {"Responses", Type::structs, {}, Role::none, topic},
    {"NodeEndpoints", Type::structs, since(16), Role::endpoints, node_endpoint, 0},
};
inline constexpr Message response{"FetchResponse", 1, {0, 18}, 12, response_fields};
}  // namespace fetch

namespace metadata {  // 3
inline constexpr Field broker[] = {
    {"NodeId", Type::int32, {}, Role::node_id},
    {"Host", Type::string, {}, Role::host},
    {"Port", Type::int32, {}, Role::port},
    {"Rack", Type::string, since(1)},
};
inline constexpr Field node[] = {{"", Type::int32}};
inline constexpr Field partition[] = {
    {"ErrorCode", Type::int16},
    {"PartitionIndex", Type::int32},
    {"LeaderId", Type::int32},
    {"LeaderEpoch", Type::int32, since(7)},
    {"ReplicaNodes", Type::scalars, {}, Role::none, node},
    {"IsrNodes", Type::scalars, {}, Role::none, node},
    {"OfflineReplicas", Type::scalars, since(5), Role::none, node},
};
inline constexpr Field topic[] = {
    {"ErrorCode", Type::int16},
    {"Name", Type::string, {}, Role::topic_name},
    {"TopicId", Type::uuid, since(10), Role::topic_id},
    {"IsInternal", Type::int8, since(1)},
    {"Partitions", Type::structs, {}, Role::none, partition},
    {"TopicAuthorizedOperations", Type::int32, since(8)},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32, since(3)},
    {"Brokers", Type::structs, {}, Role::endpoints, broker},
    {"ClusterId", Type::string, since(2)},
    {"ControllerId", Type::int32, since(1)},
    {"Topics", Type::structs, {}, Role::none, topic},
    {"ClusterAuthorizedOperations", Type::int32, {8, 10}},
    {"ErrorCode", Type::int16, since(13)},
};
inline constexpr Message response{"MetadataResponse", 3, {0, 13}, 9, response_fields};
}  // namespace metadata

namespace find_coordinator {  // 10
inline constexpr Field coordinator[] = {
    {"Key", Type::string},
    {"NodeId", Type::int32, {}, Role::node_id},
    {"Host", Type::string, {}, Role::host},
    {"Port", Type::int32, {}, Role::port},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"ErrorMessage", Type::string},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32, since(1)},
    {"ErrorCode", Type::int16, until(3), Role::error_code},
    {"ErrorMessage", Type::string, {1, 3}},
    {"NodeId", Type::int32, until(3), Role::node_id},
    {"Host", Type::string, until(3), Role::host},
    {"Port", Type::int32, until(3), Role::port},
    {"Coordinators", Type::structs, since(4), Role::endpoints, coordinator},
};
inline constexpr Message response{"FindCoordinatorResponse", 10, {0, 6}, 3, response_fields};
}  // namespace find_coordinator

namespace api_versions {  // 18
inline constexpr Field api[] = {
    {"ApiKey", Type::int16, {}, Role::api_key},
    {"MinVersion", Type::int16, {}, Role::min_version},
    {"MaxVersion", Type::int16, {}, Role::max_version},
};
inline constexpr Field supported_feature[] = {
    {"Name", Type::string},
    {"MinVersion", Type::int16},
    {"MaxVersion", Type::int16},
};
inline constexpr Field finalized_feature[] = {
    {"Name", Type::string},
    {"MaxVersionLevel", Type::int16},
    {"MinVersionLevel", Type::int16},
};
inline constexpr Field response_fields[] = {
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"ApiKeys", Type::structs, {}, Role::api_versions, api},
    {"ThrottleTimeMs", Type::int32, since(1)},
    {"SupportedFeatures", Type::structs, since(3), Role::none, supported_feature, 0},
    {"FinalizedFeaturesEpoch", Type::int64, since(3), Role::none, {}, 1},
    {"FinalizedFeatures", Type::structs, since(3), Role::none, finalized_feature, 2},
    {"ZkMigrationReady", Type::int8, since(3), Role::none, {}, 3},
};
inline constexpr Message response{"ApiVersionsResponse", 18, {0, 5}, 3, response_fields};
}  // namespace api_versions

namespace describe_quorum {  // 55
inline constexpr Field replica[] = {
    {"ReplicaId", Type::int32},
    {"ReplicaDirectoryId", Type::uuid, since(2)},
    {"LogEndOffset", Type::int64},
    {"LastFetchTimestamp", Type::int64, since(1)},
    {"LastCaughtUpTimestamp", Type::int64, since(1)},
};
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string, since(2)},
    {"LeaderId", Type::int32},
    {"LeaderEpoch", Type::int32},
    {"HighWatermark", Type::int64},
    {"CurrentVoters", Type::structs, {}, Role::none, replica},
    {"Observers", Type::structs, {}, Role::none, replica},
};
inline constexpr Field topic[] = {
    {"TopicName", Type::string},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field listener[] = {
    {"Name", Type::string},
    {"Host", Type::string, {}, Role::host},
    {"Port", Type::uint16, {}, Role::port},
};
inline constexpr Field node[] = {
    {"NodeId", Type::int32, {}, Role::node_id},
    {"Listeners", Type::structs, {}, Role::listeners, listener},
};
inline constexpr Field response_fields[] = {
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string, since(2)},
    {"Topics", Type::structs, {}, Role::none, topic},
    {"Nodes", Type::structs, since(2), Role::endpoints, node},
};
inline constexpr Message response{"DescribeQuorumResponse", 55, {0, 2}, 0, response_fields};
}  // namespace describe_quorum

namespace describe_cluster {  // 60
inline constexpr Field broker[] = {
    {"BrokerId", Type::int32, {}, Role::node_id}, {"Host", Type::string, {}, Role::host},
    {"Port", Type::int32, {}, Role::port},        {"Rack", Type::string},
    {"IsFenced", Type::int8, since(2)},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string},
    {"EndpointType", Type::int8, since(1), Role::endpoint_type},
    {"ClusterId", Type::string},
    {"ControllerId", Type::int32},
    {"Brokers", Type::structs, {}, Role::endpoints, broker},
    {"ClusterAuthorizedOperations", Type::int32},
};
inline constexpr Message response{"DescribeClusterResponse", 60, {0, 2}, 0, response_fields};
}  // namespace describe_cluster

namespace share_fetch {  // 78
inline constexpr Field acquired_records[] = {
    {"FirstOffset", Type::int64},
    {"LastOffset", Type::int64},
    {"DeliveryCount", Type::int16},
};
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string},
    {"AcknowledgeErrorCode", Type::int16},
    {"AcknowledgeErrorMessage", Type::string},
    {"CurrentLeader", Type::structure, {}, Role::none, leader_and_epoch},
    {"Records", Type::records, {}, Role::records},
    {"AcquiredRecords", Type::structs, {}, Role::none, acquired_records},
};
inline constexpr Field topic[] = {
    {"TopicId", Type::uuid},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string},
    {"AcquisitionLockTimeoutMs", Type::int32},
    {"Responses", Type::structs, {}, Role::none, topic},
    {"NodeEndpoints", Type::structs, {}, Role::endpoints, node_endpoint},
};
inline constexpr Message response{"ShareFetchResponse", 78, {1, 2}, 0, response_fields};
}  // namespace share_fetch

namespace share_acknowledge {  // 79
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string},
    {"CurrentLeader", Type::structure, {}, Role::none, leader_and_epoch},
};
inline constexpr Field topic[] = {
    {"TopicId", Type::uuid},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16},
    {"ErrorMessage", Type::string},
    {"AcquisitionLockTimeoutMs", Type::int32, since(2)},
    {"Responses", Type::structs, {}, Role::none, topic},
    {"NodeEndpoints", Type::structs, {}, Role::endpoints, node_endpoint},
};
inline constexpr Message response{"ShareAcknowledgeResponse", 79, {1, 2}, 0, response_fields};
}  // namespace share_acknowledge

// An API that the proxy must read, in one direction or in both.
struct Api {
  std::int16_t key;
  std::string_view name;
  Versions served;          // what clients may speak: the ApiVersions answer is clamped to it
  const Message* request;   // read in every served version; nothing: requests pass as opaque bytes
  const Message* response;  // nothing: responses pass as opaque bytes
  Versions response_read;   // versions whose response has something to rewrite
  Version flexible_since;   // of both headers, but for the response header of ApiVersions
  bool tells_ids = false;   // the response is read for its producer ids, and for nothing else
};

inline constexpr Versions no_version{0, -1};

inline constexpr std::array apis = {
    Api{0, "Produce", {0, 13}, &produce::request, &produce::response, {10, 13}, 9},
    Api{1, "Fetch", {0, 18}, nullptr, &fetch::response, {16, 18}, 12},
    Api{3, "Metadata", {0, 13}, nullptr, &metadata::response, {0, 13}, 9},
    Api{10, "FindCoordinator", {0, 6}, nullptr, &find_coordinator::response, {0, 6}, 3},
    Api{18, "ApiVersions", {0, 5}, nullptr, &api_versions::response, {0, 5}, 3},
    Api{22, "InitProducerId", {0, 6}, &init_producer_id::request, &init_producer_id::response, {0, 6}, 2, true},
    Api{24, "AddPartitionsToTxn", {0, 5}, &add_partitions_to_txn::request, nullptr, no_version, 3},
    Api{25, "AddOffsetsToTxn", {0, 4}, &add_offsets_to_txn::request, nullptr, no_version, 3},
    Api{26, "EndTxn", {0, 5}, &end_txn::request, &end_txn::response, {5, 5}, 3, true},
    Api{27, "WriteTxnMarkers", {0, 2}, &write_txn_markers::request, &write_txn_markers::response, {0, 2}, 1, true},
    Api{28, "TxnOffsetCommit", {0, 6}, &txn_offset_commit::request, nullptr, no_version, 3},
    Api{55, "DescribeQuorum", {0, 2}, nullptr, &describe_quorum::response, {2, 2}, 0},
    Api{60, "DescribeCluster", {0, 2}, nullptr, &describe_cluster::response, {0, 2}, 0},
    Api{61, "DescribeProducers", {0, 0}, nullptr, &describe_producers::response, {0, 0}, 0, true},
    Api{65, "DescribeTransactions", {0, 0}, nullptr, &describe_transactions::response, {0, 0}, 0, true},
    Api{66, "ListTransactions", {0, 2}, &list_transactions::request, &list_transactions::response, {0, 2}, 0, true},
    Api{78, "ShareFetch", {1, 2}, nullptr, &share_fetch::response, {1, 2}, 0},
    Api{79, "ShareAcknowledge", {1, 2}, nullptr, &share_acknowledge::response, {1, 2}, 0},
};

// By key: where in `apis` it stands, counted from 1; asked several times a frame.
inline constexpr auto api_index = [] {
  std::array<std::uint8_t, 80> index{};
  for (std::size_t i = 0; i < apis.size(); ++i)
    index.at(static_cast<std::size_t>(apis[i].key)) = static_cast<std::uint8_t>(i + 1);
  return index;
}();

// Nothing: the proxy has no business with this API and passes it on as opaque bytes.
constexpr const Api* find_api(std::int16_t key) {
  const auto at = static_cast<std::size_t>(key);  // a negative one is far behind the end
  const std::size_t found = at < api_index.size() ? api_index[at] : 0;
  return found == 0 ? nullptr : &apis[found - 1];
}

}  // namespace codec
