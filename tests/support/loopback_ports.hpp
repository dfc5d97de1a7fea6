#pragma once
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <vector>

namespace support {

// Ports of 127.0.0.1 that the kernel has chosen. Nobody else gets them while this lives, but a server of this process
// may listen on them, since both set SO_REUSEADDR and this one never listens.
class LoopbackPorts {
 public:
  LoopbackPorts() = default;
  LoopbackPorts(const LoopbackPorts&) = delete;
  LoopbackPorts& operator=(const LoopbackPorts&) = delete;
  ~LoopbackPorts() {
    for (const int socket : sockets_) close(socket);
  }

  // 0: there is none.
  std::uint16_t take() {
    const int socket = sockets_.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    if (bind(socket, reinterpret_cast<sockaddr*>(&address), size) != 0) return 0;
    if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
    return ntohs(address.sin_port);
  }

 private:
  std::vector<int> sockets_;
};

}  // namespace support
