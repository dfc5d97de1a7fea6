# What every target of ours links: warnings and, when SANITIZE names some, sanitizers.
option(WARNINGS_ARE_ERRORS "Stop at the first warning" OFF)
set(SANITIZE "" CACHE STRING "Sanitizers as -fsanitize takes them, e.g. address,undefined")
option(FUZZ "Build the fuzz targets; needs clang and its compiler-rt" OFF)

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_library(dev INTERFACE)
target_compile_features(dev INTERFACE cxx_std_20)
target_include_directories(dev INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(dev INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(WARNINGS_ARE_ERRORS)
  target_compile_options(dev INTERFACE -Werror)
endif()

if(SANITIZE)
  target_compile_options(dev INTERFACE -fsanitize=${SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(dev INTERFACE -fsanitize=${SANITIZE})
  if(SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio's fences: TSan does not model them, and Asio does not rely on them alone.
    target_compile_options(dev INTERFACE -Wno-tsan)
  endif()
  if(SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # A coroutine's resume pointer has no type that could be checked.
    target_compile_options(dev INTERFACE -fno-sanitize=function)
  endif()
endif()
if(FUZZ)
  target_compile_options(dev INTERFACE -fsanitize=fuzzer-no-link)
endif()

# Programs that use librdkafka and run under the thread sanitizer: see tests/support/tsan_threads.cpp.
function(prepare_for_tsan program)
  if(SANITIZE MATCHES "thread")
    target_sources(${program} PRIVATE ${PROJECT_SOURCE_DIR}/tests/support/tsan_threads.cpp)
    set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
  endif()
endfunction()
