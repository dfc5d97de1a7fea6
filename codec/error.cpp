#include "codec/error.hpp"

#include <string>

namespace codec {
namespace {

class Category final : public boost::system::error_category {
 public:
  const char* name() const noexcept override { return "kafka codec"; }
  std::string message(int value) const override {
    switch (static_cast<Error>(value)) {
      case Error::truncated: return "the message ends before its fields do";
      case Error::bad_length: return "a length that is negative or longer than the message";
      case Error::unsupported_version: return "a version that this proxy does not know";
      case Error::bad_tagged_field: return "a tagged field that is there twice or longer than its value";
      case Error::bad_record_batch: return "a record batch with an impossible length or magic";
    }
    return "unknown error";
  }
};

}  // namespace

boost::system::error_code make_error_code(Error error) noexcept {
  static const Category category;
  return {static_cast<int>(error), category};
}

}  // namespace codec
