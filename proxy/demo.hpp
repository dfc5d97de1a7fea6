#pragma once

namespace proxy {

struct DemoOptions {
  bool as_json = false;
};

// Shows what the proxy is for, with clusters inside this process and real connections over loopback: two sources whose
// producers have the same id are mirrored verbatim into one destination, once without the proxy and once through it,
// and from there to a third cluster. What is printed was read back from the destinations, and is checked: exit_failed
// when a value is not what it has to be.
int run_demo(const DemoOptions& options);

}  // namespace proxy
