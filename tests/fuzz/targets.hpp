#pragma once
#include <cstddef>
#include <span>

// What the fuzz targets do with one input. Each aborts when what it holds of the codec is not so; the inputs in
// corpus/NAME are replayed by a plain test as well.
namespace fuzz {

using Input = std::span<const std::byte>;

void walker(Input input);
void endpoints(Input input);
void api_versions(Input input);

}  // namespace fuzz
