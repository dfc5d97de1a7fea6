#pragma once
// Catch2 2 (Debian 12) and 3 (Debian 13) name their headers differently and mean the same by what is used here.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#else
#include <catch2/catch.hpp>
#endif
