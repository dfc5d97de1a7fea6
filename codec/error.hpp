#pragma once
#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

namespace codec {

enum class Error {
  truncated = 1,        // the message ends before its fields do
  bad_length,           // a length that is negative, longer than what is left, or a varint of more than five bytes
  unsupported_version,  // an API version that no table describes
  bad_tagged_field,     // a tagged field that stands there twice or is longer than its value
  bad_record_batch,     // a record batch whose length or magic makes no sense
};

boost::system::error_code make_error_code(Error error) noexcept;

using ErrorCode = boost::system::error_code;
template <typename T>
using Result = boost::system::result<T>;

}  // namespace codec

template <>
struct boost::system::is_error_code_enum<codec::Error> : std::true_type {};
