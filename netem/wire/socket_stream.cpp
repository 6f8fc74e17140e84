#include "netem/wire/socket_stream.hpp"

#include "netem/wire/end_reasons.hpp"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace shoal::netem::wire {

std::string socket_error_text(int code) {
  switch (code) {
  case ECONNREFUSED:
    return std::string(nothing_listens);
  case EHOSTUNREACH:
  case ENETUNREACH:
    return "there is no route to it";
  case ETIMEDOUT:
    return std::string(does_not_answer);
  case ECONNRESET:
  case EPIPE:
    return std::string(closed_by_other);
  default:
    return std::strerror(code);
  }
}

io_state socket_stream::failed(int code) {
  why_ = socket_error_text(code);
  return io_state::failed;
}

io_result socket_stream::read(std::span<const iovec> into) {
  for (;;) {
    const auto got = ::readv(socket(), into.data(), static_cast<int>(into.size()));
    if (got > 0) return {io_state::done, static_cast<std::size_t>(got)};
    if (got == 0) return {io_state::ended, 0};
    if (errno == EAGAIN) return {io_state::wants_read, 0};
    if (errno != EINTR) return {failed(errno), 0};
  }
}

io_result socket_stream::write(std::span<const iovec> what) {
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(what.data());
  message.msg_iovlen = what.size();
  for (;;) {
    const auto took = ::sendmsg(socket(), &message, MSG_NOSIGNAL);
    if (took >= 0) {
      sent_ += static_cast<std::uint64_t>(took);
      return {io_state::done, static_cast<std::size_t>(took)};
    }
    if (errno == EAGAIN) return {io_state::wants_write, 0};
    if (errno != EINTR) return {failed(errno), 0};
  }
}

void socket_stream::end() {
  ::shutdown(socket(), SHUT_WR);
}

} // namespace shoal::netem::wire
