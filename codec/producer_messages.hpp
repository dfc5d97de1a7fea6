#pragma once
#include "codec/schema.hpp"

// Tables of the messages that carry producer ids outside of record batches: transactions, and what operators ask about
// them.
namespace codec {

inline constexpr Field partition_index[] = {{"", Type::int32}};

namespace init_producer_id {  // 22
inline constexpr Field request_fields[] = {
    {"TransactionalId", Type::string},
    {"TransactionTimeoutMs", Type::int32},
    {"ProducerId", Type::int64, since(3), Role::producer_id},
    {"ProducerEpoch", Type::int16, since(3)},
    {"Enable2Pc", Type::int8, since(6)},
    {"KeepPreparedTxn", Type::int8, since(6)},
};
inline constexpr Message request{"InitProducerIdRequest", 22, {0, 6}, 2, request_fields};

inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"OngoingTxnProducerId", Type::int64, since(6), Role::producer_id},
    {"OngoingTxnProducerEpoch", Type::int16, since(6)},
};
inline constexpr Message response{"InitProducerIdResponse", 22, {0, 6}, 2, response_fields};
}  // namespace init_producer_id

namespace add_partitions_to_txn {  // 24
inline constexpr Field topic[] = {
    {"Name", Type::string},
    {"Partitions", Type::scalars, {}, Role::none, partition_index},
};
inline constexpr Field transaction[] = {
    {"TransactionalId", Type::string},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"VerifyOnly", Type::int8},
    {"Topics", Type::structs, {}, Role::none, topic},
};
inline constexpr Field request_fields[] = {
    {"Transactions", Type::structs, since(4), Role::none, transaction},
    {"V3AndBelowTransactionalId", Type::string, until(3)},
    {"V3AndBelowProducerId", Type::int64, until(3), Role::producer_id},
    {"V3AndBelowProducerEpoch", Type::int16, until(3)},
    {"V3AndBelowTopics", Type::structs, until(3), Role::none, topic},
};
inline constexpr Message request{"AddPartitionsToTxnRequest", 24, {0, 5}, 3, request_fields};
}  // namespace add_partitions_to_txn

namespace add_offsets_to_txn {  // 25
inline constexpr Field request_fields[] = {
    {"TransactionalId", Type::string},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"GroupId", Type::string},
};
inline constexpr Message request{"AddOffsetsToTxnRequest", 25, {0, 4}, 3, request_fields};
}  // namespace add_offsets_to_txn

namespace end_txn {  // 26
inline constexpr Field request_fields[] = {
    {"TransactionalId", Type::string},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"Committed", Type::int8},
};
inline constexpr Message request{"EndTxnRequest", 26, {0, 5}, 3, request_fields};

inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"ProducerId", Type::int64, since(5), Role::producer_id},
    {"ProducerEpoch", Type::int16, since(5)},
};
inline constexpr Message response{"EndTxnResponse", 26, {0, 5}, 3, response_fields};
}  // namespace end_txn

namespace write_txn_markers {  // 27
inline constexpr Field request_topic[] = {
    {"Name", Type::string},
    {"PartitionIndexes", Type::scalars, {}, Role::none, partition_index},
};
inline constexpr Field request_marker[] = {
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"TransactionResult", Type::int8},
    {"Topics", Type::structs, {}, Role::none, request_topic},
    {"CoordinatorEpoch", Type::int32},
    {"TransactionVersion", Type::int8, since(2)},
};
inline constexpr Field request_fields[] = {{"Markers", Type::structs, {}, Role::none, request_marker}};
inline constexpr Message request{"WriteTxnMarkersRequest", 27, {0, 2}, 1, request_fields};

inline constexpr Field response_partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16},
};
inline constexpr Field response_topic[] = {
    {"Name", Type::string},
    {"Partitions", Type::structs, {}, Role::none, response_partition},
};
inline constexpr Field response_marker[] = {
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"Topics", Type::structs, {}, Role::none, response_topic},
};
inline constexpr Field response_fields[] = {{"Markers", Type::structs, {}, Role::none, response_marker}};
inline constexpr Message response{"WriteTxnMarkersResponse", 27, {0, 2}, 1, response_fields};
}  // namespace write_txn_markers

namespace txn_offset_commit {  // 28
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32},
    {"CommittedOffset", Type::int64},
    {"CommittedLeaderEpoch", Type::int32, since(2)},
    {"CommittedMetadata", Type::string},
};
inline constexpr Field topic[] = {
    {"Name", Type::string, until(5)},
    {"TopicId", Type::uuid, since(6)},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field request_fields[] = {
    {"TransactionalId", Type::string},
    {"GroupId", Type::string},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"GenerationIdOrMemberEpoch", Type::int32, since(3)},
    {"MemberId", Type::string, since(3)},
    {"GroupInstanceId", Type::string, since(3)},
    {"Topics", Type::structs, {}, Role::none, topic},
};
inline constexpr Message request{"TxnOffsetCommitRequest", 28, {0, 6}, 3, request_fields};
}  // namespace txn_offset_commit

namespace describe_producers {  // 61
inline constexpr Field producer[] = {
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int32},
    {"LastSequence", Type::int32},
    {"LastTimestamp", Type::int64},
    {"CoordinatorEpoch", Type::int32},
    {"CurrentTxnStartOffset", Type::int64},
};
inline constexpr Field partition[] = {
    {"PartitionIndex", Type::int32},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"ErrorMessage", Type::string},
    {"ActiveProducers", Type::structs, {}, Role::none, producer},
};
inline constexpr Field topic[] = {
    {"Name", Type::string},
    {"Partitions", Type::structs, {}, Role::none, partition},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"Topics", Type::structs, {}, Role::none, topic},
};
inline constexpr Message response{"DescribeProducersResponse", 61, {0, 0}, 0, response_fields};
}  // namespace describe_producers

namespace describe_transactions {  // 65
inline constexpr Field topic[] = {
    {"Topic", Type::string},
    {"Partitions", Type::scalars, {}, Role::none, partition_index},
};
// One with an error has a producer id of 0, which is nobody's.
inline constexpr Field state[] = {
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"TransactionalId", Type::string},
    {"TransactionState", Type::string},
    {"TransactionTimeoutMs", Type::int32},
    {"TransactionStartTimeMs", Type::int64},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"ProducerEpoch", Type::int16},
    {"Topics", Type::structs, {}, Role::none, topic},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"TransactionStates", Type::structs, {}, Role::none, state},
};
inline constexpr Message response{"DescribeTransactionsResponse", 65, {0, 0}, 0, response_fields};
}  // namespace describe_transactions

namespace list_transactions {  // 66
inline constexpr Field text[] = {{"", Type::string}};
inline constexpr Field producer_id[] = {{"", Type::int64, {}, Role::producer_id}};
inline constexpr Field request_fields[] = {
    {"StateFilters", Type::scalars, {}, Role::none, text},
    {"ProducerIdFilters", Type::scalars, {}, Role::none, producer_id},
    {"DurationFilter", Type::int64, since(1)},
    {"TransactionalIdPattern", Type::string, since(2)},
};
inline constexpr Message request{"ListTransactionsRequest", 66, {0, 2}, 0, request_fields};

inline constexpr Field state[] = {
    {"TransactionalId", Type::string},
    {"ProducerId", Type::int64, {}, Role::producer_id},
    {"TransactionState", Type::string},
};
inline constexpr Field response_fields[] = {
    {"ThrottleTimeMs", Type::int32},
    {"ErrorCode", Type::int16, {}, Role::error_code},
    {"UnknownStateFilters", Type::scalars, {}, Role::none, text},
    {"TransactionStates", Type::structs, {}, Role::none, state},
};
inline constexpr Message response{"ListTransactionsResponse", 66, {0, 2}, 0, response_fields};
}  // namespace list_transactions

}  // namespace codec
