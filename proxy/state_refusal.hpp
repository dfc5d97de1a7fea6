#pragma once
#include <librdkafka/rdkafka.h>

#include <string>

#include "config/config.hpp"

namespace proxy {

// What is done with the state topic.
enum class StateOperation { describe, create, describe_configs, read, write };

// What a refusal means that trying again does not mend, in a sentence that says what does. Empty: trying again may.
std::string explain_refusal(StateOperation operation, rd_kafka_resp_err_t error, const std::string& topic);

// The same for what becomes of a client's connections (librdkafka's error callback); `text` is librdkafka's.
std::string explain_login_failure(rd_kafka_resp_err_t error, const std::string& text,
                                  const config::Destination& destination);

}  // namespace proxy
