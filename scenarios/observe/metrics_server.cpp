#include "scenarios/observe/metrics_server.hpp"

#include "scenarios/observe/listen_address.hpp"

#include <fmt/format.h>
#include <microhttpd.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shoal::scenarios {

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned most_connections = 64, idle_seconds = 10;
constexpr std::size_t header_bytes = 16 * 1024;
/// The time limit of a connection, which serves one request.
constexpr auto time_for_all = std::chrono::seconds(20);

} // namespace

struct metrics_server::state {
  MHD_Daemon* daemon = nullptr;
  std::string own_host, machine;
  std::mutex guard; // guards the members below
  std::vector<std::weak_ptr<prometheus::Collectable>> values;
  struct connection {
    int descriptor;
    steady::time_point since;
  };
  std::map<MHD_Connection*, connection> connections;
  bool closing = false;
  std::condition_variable ends;
  std::thread reaper;

  ~state() {
    {
      std::lock_guard lock(guard);
      closing = true;
    }
    ends.notify_all();
    if (reaper.joinable()) reaper.join();
    if (daemon != nullptr) MHD_stop_daemon(daemon);
  }

  std::string page() {
    std::vector<prometheus::MetricFamily> all;
    std::lock_guard lock(guard);
    std::erase_if(values, [](const auto& each) { return each.expired(); });
    for (const auto& each : values)
      if (const auto lives = each.lock()) {
        auto families = lives->Collect();
        all.insert(all.end(), std::make_move_iterator(families.begin()),
                   std::make_move_iterator(families.end()));
      }
    return prometheus::TextSerializer().Serialize(all);
  }

  static MHD_Result reply(MHD_Connection* to, unsigned status, std::string_view text) {
    MHD_Response* response = MHD_create_response_from_buffer(
        text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            "text/plain; version=0.0.4; charset=utf-8");
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    const MHD_Result out = MHD_queue_response(to, status, response);
    MHD_destroy_response(response);
    return out;
  }

  MHD_Result answer(MHD_Connection* to, std::string_view url, std::string_view method) {
    const char* host = MHD_lookup_connection_value(to, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    if (method != "GET" && method != "HEAD")
      return reply(to, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    if (host != nullptr && !is_own_name(host, machine, own_host))
      return reply(to, MHD_HTTP_FORBIDDEN, "this server does not answer to that name\n");
    if (url != "/metrics") return reply(to, MHD_HTTP_NOT_FOUND, "there is no such page\n");
    return reply(to, MHD_HTTP_OK, page());
  }

  static MHD_Result on_request(void* self, MHD_Connection* to, const char* url, const char* method,
                               const char*, const char*, size_t* upload, void** seen) {
    static int begun; // no request has a body
    if (*seen == nullptr && *upload == 0) {
      *seen = &begun;
      return MHD_YES;
    }
    if (*upload != 0) return MHD_NO;
    return static_cast<state*>(self)->answer(to, url, method);
  }

  static void on_connection(void* self, MHD_Connection* of, void**,
                            MHD_ConnectionNotificationCode what) {
    auto& s = *static_cast<state*>(self);
    const auto* info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    std::lock_guard lock(s.guard);
    if (what != MHD_CONNECTION_NOTIFY_STARTED)
      s.connections.erase(of);
    else if (info != nullptr)
      s.connections[of] = {info->connect_fd, steady::now()};
  }

  /// Closes connections that take too long, such as those of slow readers.
  void reap() {
    std::unique_lock lock(guard);
    while (!closing) {
      ends.wait_for(lock, std::chrono::seconds(1));
      for (const auto& [of, one] : connections)
        if (steady::now() - one.since > time_for_all) shutdown(one.descriptor, SHUT_RDWR);
    }
  }
};

metrics_server::metrics_server(std::unique_ptr<state> s, std::string url)
    : state_(std::move(s)), url_(std::move(url)) {}

metrics_server::~metrics_server() = default;

result<std::unique_ptr<metrics_server>> metrics_server::listen(std::string_view address) {
  const auto wanted = parse_listen_address(address);
  if (!wanted) return failure{wanted.error()};
  auto s = std::make_unique<state>();
  s->own_host = wanted->v6 ? "[" + wanted->host + "]" : wanted->host;
  if (!wanted->loopback()) s->machine = machine_name();
  for (int tries = 1;; ++tries) {
    auto at = *wanted;
    const auto port = try_to_listen(at);
    if (!port)
      return failure{fmt::format("cannot serve metrics at {}: {}", at.text(), port.error())};
    at.port = *port;
    sockaddr_storage where{};
    at.fill(where);
    const unsigned v6 = at.v6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U;
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | v6, at.port, nullptr, nullptr, state::on_request, s.get(),
        MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_CONNECTION_LIMIT, most_connections,
        MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        header_bytes, MHD_OPTION_THREAD_STACK_SIZE, std::size_t{1} << 20,
        MHD_OPTION_NOTIFY_CONNECTION, state::on_connection, s.get(), MHD_OPTION_END);
    if (s->daemon != nullptr) {
      s->reaper = std::thread([raw = s.get()] { raw->reap(); });
      return std::unique_ptr<metrics_server>(
          new metrics_server(std::move(s), fmt::format("http://{}/metrics", at.text())));
    }
    // Between try_to_listen() and here another process may have taken the free port.
    if (wanted->port != 0 || tries == 10)
      return failure{
          fmt::format("cannot serve metrics at {}: the server does not start", at.text())};
  }
}

void metrics_server::serve(const std::shared_ptr<prometheus::Registry>& values) {
  std::lock_guard lock(state_->guard);
  state_->values.push_back(values);
}

} // namespace shoal::scenarios
