#include "scenarios/page/page_server.hpp"

#include "kernels/base/check.hpp"
#include "scenarios/observe/listen_address.hpp"
#include "scenarios/page/page_route.hpp"
#include "scenarios/page/page_text.hpp"

#include <microhttpd.h>
#include <sys/socket.h>

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <set>
#include <thread>

namespace shoal::scenarios {

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned most_connections = 256, most_streams = 64, idle_seconds = 15;
constexpr std::size_t header_bytes = 16 * 1024;
constexpr auto time_to_ask = std::chrono::seconds(10), time_to_take = std::chrono::seconds(60);

/// Content security policy: the page may run its own script and connect to this server only.
constexpr const char* policy = "default-src 'none'; script-src 'unsafe-inline'; style-src "
                               "'unsafe-inline'; img-src data:; connect-src 'self'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

constexpr const char* plain = "text/plain; charset=utf-8";

} // namespace

void page_feed::publish(std::vector<run_view::section> sections) {
  std::function<void()> wake;
  {
    std::lock_guard lock(guard_);
    for (run_view::section& one : sections) {
      part& mine = parts_[one.name];
      if (mine.json && *mine.json == one.json) continue;
      mine.json = std::make_shared<const std::string>(std::move(one.json));
      mine.version = ++version_;
    }
    wake = on_change_;
  }
  if (wake) wake();
}

void page_feed::finish() {
  std::function<void()> wake;
  {
    std::lock_guard lock(guard_);
    finished_ = true;
    wake = on_change_;
  }
  if (wake) wake();
}

struct page_server::state {
  /// A client that reads a feed.
  struct stream {
    state* server;
    page_feed* feed;
    MHD_Connection* connection;
    std::map<std::string, std::uint64_t> has; // version of each section that the client has
    std::deque<std::shared_ptr<const std::string>> pending;
    std::size_t sent = 0; // bytes of pending.front() that are sent
    bool suspended = false, told_end = false;
    steady::time_point took = steady::now(); // when the client took bytes last

    stream(state* s, page_feed* f, MHD_Connection* c) : server(s), feed(f), connection(c) {
      ++feed->readers_;
    }
    ~stream() { --feed->readers_; }
    bool collect();
  };
  struct connection {
    int descriptor;
    steady::time_point since;
    enum { asking, taking, streaming } doing = asking;
  };

  MHD_Daemon* daemon = nullptr;
  std::string page, own_host, machine;
  std::mutex guard; // guards the members below
  std::vector<std::shared_ptr<page_feed>> feeds;
  std::set<stream*> streams;
  std::map<MHD_Connection*, connection> connections;
  bool closing = false;
  std::condition_variable ends;
  std::thread reaper;

  ~state();
  void wake();
  void reap();
  MHD_Result answer(MHD_Connection* to, const char* url, const char* method);
  MHD_Result read_along(MHD_Connection* to, page_feed& feed);
  MHD_Result reply(MHD_Connection* to, unsigned status, const char* type, std::string_view text,
                   bool keep);
  void now(MHD_Connection* of, decltype(connection::doing) doing);

  static MHD_Result on_request(void* self, MHD_Connection* to, const char* url, const char* method,
                               const char*, const char*, size_t* upload, void** seen);
  static void on_completed(void* self, MHD_Connection* of, void**, MHD_RequestTerminationCode);
  static void on_connection(void* self, MHD_Connection* of, void**,
                            MHD_ConnectionNotificationCode what);
  static ssize_t on_read(void* of, uint64_t, char* into, size_t most);
  static void on_free(void* of);
};

/// Appends changed sections to `pending`. Returns false if no section has changed.
bool page_server::state::stream::collect() {
  std::lock_guard lock(feed->guard_);
  const auto piece = [this](std::string text) {
    pending.push_back(std::make_shared<const std::string>(std::move(text)));
  };
  bool any = false;
  for (const auto& [name, part] : feed->parts_) {
    std::uint64_t& mine = has[name];
    if (mine == part.version) continue;
    mine = part.version;
    piece((any ? "," : "data: {\"sections\":{") + json_quoted(name) + ":");
    pending.push_back(part.json);
    any = true;
  }
  if (any)
    piece(fmt::format("}},\"done\":{}}}\n\n", feed->finished_));
  else if (feed->finished_ && !told_end)
    piece("data: {\"sections\":{},\"done\":true}\n\n");
  told_end = feed->finished_;
  return !pending.empty();
}

ssize_t page_server::state::on_read(void* of, uint64_t, char* into, size_t most) {
  auto& reader = *static_cast<stream*>(of);
  std::lock_guard lock(reader.server->guard);
  reader.took = steady::now();
  if (reader.pending.empty() && !reader.collect()) {
    if (reader.told_end || reader.server->closing) return MHD_CONTENT_READER_END_OF_STREAM;
    reader.suspended = true;
    MHD_suspend_connection(reader.connection);
    return 0;
  }
  std::size_t done = 0;
  while (done < most && !reader.pending.empty()) {
    const std::string& piece = *reader.pending.front();
    const std::size_t n = std::min(most - done, piece.size() - reader.sent);
    std::memcpy(into + done, piece.data() + reader.sent, n);
    done += n;
    reader.sent += n;
    if (reader.sent == piece.size()) {
      reader.pending.pop_front();
      reader.sent = 0;
    }
  }
  return static_cast<ssize_t>(done);
}

void page_server::state::on_free(void* of) {
  auto* reader = static_cast<stream*>(of);
  {
    std::lock_guard lock(reader->server->guard);
    reader->server->streams.erase(reader);
  }
  reader->server->ends.notify_all();
  delete reader;
}

void page_server::state::wake() {
  std::lock_guard lock(guard);
  for (stream* reader : streams)
    if (std::exchange(reader->suspended, false)) {
      reader->took = steady::now();
      MHD_resume_connection(reader->connection);
    }
}

/// Closes connections that exceed a time limit. The daemon itself closes only idle connections.
void page_server::state::reap() {
  std::unique_lock lock(guard);
  while (!closing) {
    ends.wait_for(lock, std::chrono::seconds(1));
    for (const auto& [of, one] : connections) {
      const auto waited = steady::now() - one.since;
      if ((one.doing == connection::asking && waited > time_to_ask) ||
          (one.doing == connection::taking && waited > time_to_take))
        shutdown(one.descriptor, SHUT_RDWR);
    }
    // A client that reads along and takes nothing keeps its place from others.
    for (const stream* reader : streams)
      if (!reader->suspended && steady::now() - reader->took > time_to_take)
        if (const auto found = connections.find(reader->connection); found != connections.end())
          shutdown(found->second.descriptor, SHUT_RDWR);
  }
}

void page_server::state::now(MHD_Connection* of, decltype(connection::doing) doing) {
  std::lock_guard lock(guard);
  if (const auto found = connections.find(of); found != connections.end()) {
    found->second.doing = doing;
    found->second.since = steady::now();
  }
}

void page_server::state::on_connection(void* self, MHD_Connection* of, void**,
                                       MHD_ConnectionNotificationCode what) {
  auto& s = *static_cast<state*>(self);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    std::lock_guard lock(s.guard);
    if (info != nullptr) s.connections[of] = {info->connect_fd, steady::now()};
  } else {
    // Remove the connection before its descriptor is closed, because the system may reuse
    // descriptors.
    std::lock_guard lock(s.guard);
    s.connections.erase(of);
  }
}

void page_server::state::on_completed(void* self, MHD_Connection* of, void**,
                                      MHD_RequestTerminationCode) {
  static_cast<state*>(self)->now(of, connection::asking);
}

MHD_Result page_server::state::reply(MHD_Connection* to, unsigned status, const char* type,
                                     std::string_view text, bool keep) {
  MHD_Response* response =
      MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()),
                                      keep ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "Content-Security-Policy", policy);
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  const MHD_Result out = MHD_queue_response(to, status, response);
  MHD_destroy_response(response);
  return out;
}

MHD_Result page_server::state::read_along(MHD_Connection* to, page_feed& feed) {
  auto* reader = new stream(this, &feed, to);
  MHD_Response* response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 64 * 1024, on_read, reader, on_free);
  if (response == nullptr) {
    delete reader;
    return MHD_NO;
  }
  bool room = false;
  {
    std::lock_guard lock(guard);
    room = streams.size() < most_streams && !closing;
    streams.insert(reader); // on_free removes the reader
  }
  if (!room) {
    MHD_destroy_response(response);
    return reply(to, MHD_HTTP_SERVICE_UNAVAILABLE, plain, "too many are reading along\n", true);
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  now(to, connection::streaming);
  const MHD_Result out = MHD_queue_response(to, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return out;
}

MHD_Result page_server::state::answer(MHD_Connection* to, const char* url, const char* method) {
  now(to, connection::taking);
  const char* host = MHD_lookup_connection_value(to, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
  const auto shown = [this] {
    std::lock_guard lock(guard);
    return feeds;
  }();
  const auto route = route_of(
      {method, url, host == nullptr ? std::nullopt : std::optional<std::string_view>(host)},
      shown.size(), machine, own_host);
  switch (route.what) {
  case page_route::kind::no_such_method:
    return reply(to, MHD_HTTP_METHOD_NOT_ALLOWED, plain, "only GET and HEAD\n", true);
  case page_route::kind::not_our_name:
    return reply(to, MHD_HTTP_FORBIDDEN, plain, "this server does not answer to that name\n", true);
  case page_route::kind::no_such_page:
    return reply(to, MHD_HTTP_NOT_FOUND, plain, "there is no such page\n", true);
  case page_route::kind::page:
    return reply(to, MHD_HTTP_OK, "text/html; charset=utf-8", page, true);
  case page_route::kind::runs: {
    page_text out;
    out.open('[');
    for (const auto& feed : shown) out.raw("{" + place_text(feed->place()) + "}");
    out.close(']');
    return reply(to, MHD_HTTP_OK, "application/json", out.take(), false);
  }
  case page_route::kind::events:
    return read_along(to, *shown[route.run]); // the server never removes feeds
  }
  return MHD_NO;
}

MHD_Result page_server::state::on_request(void* self, MHD_Connection* to, const char* url,
                                          const char* method, const char*, const char*,
                                          size_t* upload, void** seen) {
  // The daemon calls this function first after the headers, then for each piece of a body. No route
  // accepts a body.
  static int begun;
  if (*seen == nullptr && *upload == 0) {
    *seen = &begun;
    return MHD_YES;
  }
  if (*upload != 0) return MHD_NO;
  return static_cast<state*>(self)->answer(to, url, method);
}

page_server::state::~state() {
  {
    std::lock_guard lock(guard);
    closing = true;
  }
  ends.notify_all();
  if (reaper.joinable()) reaper.join();
  for (const auto& feed : feeds) {
    std::lock_guard lock(feed->guard_);
    feed->on_change_ = nullptr;
  }
  if (daemon == nullptr) return;
  // Close all connections. MHD_stop_daemon() requires that no connection is suspended.
  wake();
  MHD_stop_daemon(daemon);
}

page_server::page_server(std::unique_ptr<state> s, std::string url)
    : state_(std::move(s)), url_(std::move(url)) {}
page_server::~page_server() = default;

void page_server::add(std::shared_ptr<page_feed> feed) {
  {
    std::lock_guard lock(feed->guard_);
    feed->on_change_ = [raw = state_.get()] { raw->wake(); };
  }
  std::lock_guard lock(state_->guard);
  state_->feeds.push_back(std::move(feed));
}

void page_server::drain(std::chrono::milliseconds most) {
  std::unique_lock lock(state_->guard);
  state_->ends.wait_for(lock, most, [this] { return state_->streams.empty(); });
}

result<std::unique_ptr<page_server>>
page_server::listen(std::string_view address, std::string page,
                    std::vector<std::shared_ptr<page_feed>> feeds) {
  const auto wanted = parse_listen_address(address);
  if (!wanted) return failure{wanted.error()};
  auto s = std::make_unique<state>();
  s->page = std::move(page);
  s->feeds = std::move(feeds);
  if (!wanted->loopback()) s->machine = machine_name();
  s->own_host = wanted->v6 ? "[" + wanted->host + "]" : wanted->host;
  for (int tries = 1;; ++tries) {
    auto at = *wanted;
    const auto port = try_to_listen(at);
    if (!port)
      return failure{fmt::format("cannot serve the page at {}: {}", at.text(), port.error())};
    at.port = *port;
    sockaddr_storage where{};
    at.fill(where);
    const unsigned v6 = at.v6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U;
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | v6, at.port, nullptr, nullptr,
        state::on_request, s.get(), MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_CONNECTION_LIMIT,
        most_connections, MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, header_bytes, MHD_OPTION_THREAD_STACK_SIZE,
        std::size_t{1} << 20, MHD_OPTION_NOTIFY_CONNECTION, state::on_connection, s.get(),
        MHD_OPTION_NOTIFY_COMPLETED, state::on_completed, s.get(), MHD_OPTION_END);
    if (s->daemon != nullptr) {
      for (const auto& feed : s->feeds) {
        std::lock_guard lock(feed->guard_);
        feed->on_change_ = [raw = s.get()] { raw->wake(); };
      }
      s->reaper = std::thread([raw = s.get()] { raw->reap(); });
      auto url = fmt::format("http://{}/", at.text());
      return std::unique_ptr<page_server>(new page_server(std::move(s), std::move(url)));
    }
    // Another process may have taken the free port in between.
    if (wanted->port != 0 || tries == 10)
      return failure{
          fmt::format("cannot serve the page at {}: the server does not start", at.text())};
  }
}

} // namespace shoal::scenarios
