#include "scenarios/inference/completions_server.hpp"

#include "scenarios/inference/completion_text.hpp"
#include "scenarios/inference/completions_request.hpp"
#include "scenarios/observe/listen_address.hpp"

#include <fmt/format.h>
#include <microhttpd.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

namespace shoal::scenarios {

namespace {

using steady = std::chrono::steady_clock;

constexpr unsigned most_connections = 128, most_texts = 32, idle_seconds = 15;
constexpr std::size_t header_bytes = 16 * 1024, most_read_bytes = 16 * most_request_bytes;
constexpr auto time_to_ask = std::chrono::seconds(10), time_to_take = std::chrono::seconds(60);
constexpr std::chrono::seconds time_for_token{120}, time_between_beats{5};

/// The page may run its own script and connect to this server only.
constexpr const char* policy = "default-src 'none'; script-src 'unsafe-inline'; style-src "
                               "'unsafe-inline'; img-src data:; connect-src 'self'; "
                               "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

std::int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// A text and the connection that waits for it. Callbacks of the text, the HTTP thread and the
/// ticker share it.
struct job {
  job(completion_order order, const learn::served_model& model, std::vector<learn::token_id> prompt,
      std::string id)
      : answer(std::move(order), model, std::move(prompt), std::move(id), unix_seconds()) {}

  std::mutex guard; // guards all members
  completion_text answer;
  std::string pending; // events of a stream that are not sent yet
  std::size_t sent = 0;
  bool over = false;
  std::optional<http_refusal> failed;
  MHD_Connection* connection = nullptr; // null: the client has gone
  bool suspended = false;
  std::uint64_t writing = 0;
  steady::time_point progress = steady::now(), beat = steady::now(), took = steady::now();

  /// Requires: the guard is held.
  void wake() {
    if (connection != nullptr && std::exchange(suspended, false)) {
      took = steady::now();
      MHD_resume_connection(connection);
    }
  }
  void fail(http_refusal why) {
    if (std::exchange(over, true)) return;
    pending += "data: " + why.json() + "\n\n";
    failed = std::move(why);
    wake();
  }
  void finish() {
    if (std::exchange(over, true)) return;
    pending += answer.end();
    wake();
  }
};

} // namespace

struct completions_server::state {
  /// A request while its bytes come, and its text.
  struct request {
    std::string body;
    std::size_t bytes = 0; ///< the length of the body, kept or not
    std::shared_ptr<job> text;
  };
  struct connection {
    int descriptor;
    steady::time_point since;
    enum { asking, taking, writing } doing = asking;
  };

  completions_options options;
  http_rules rules;
  MHD_Daemon* daemon = nullptr;
  std::mutex guard;                                    // guards the members below
  std::map<std::uint64_t, std::shared_ptr<job>> texts; // by the number of write()
  std::map<MHD_Connection*, connection> connections;
  std::uint64_t made = 0;
  bool closing = false;
  std::condition_variable ends;
  std::thread ticker;

  ~state();
  void tick();
  void look_after(const std::shared_ptr<job>& each);
  void drop(const std::shared_ptr<job>& which);
  void now(MHD_Connection* of, decltype(connection::doing) doing);
  MHD_Result answer(MHD_Connection* to, const char* path, const char* method, request& from);
  MHD_Result begin(MHD_Connection* to, request& from, completion_order order);
  MHD_Result answer_whole(MHD_Connection* to, const std::shared_ptr<job>& text);
  MHD_Result answer_stream(MHD_Connection* to, const std::shared_ptr<job>& text);
  static MHD_Result reply(MHD_Connection* to, unsigned status, const char* type,
                          const std::string& body);
  static MHD_Result refuse(MHD_Connection* to, const http_refusal& why) {
    return reply(to, why.status, "application/json", why.json());
  }

  static MHD_Result on_request(void* self, MHD_Connection* to, const char* path, const char* method,
                               const char*, const char* upload, size_t* size, void** seen);
  static void on_completed(void* self, MHD_Connection* of, void** seen, MHD_RequestTerminationCode);
  static void on_connection(void* self, MHD_Connection* of, void**,
                            MHD_ConnectionNotificationCode what);
  static ssize_t on_read(void* of, uint64_t, char* into, size_t most);
  static void on_free(void* of) { delete static_cast<std::shared_ptr<job>*>(of); }
};

MHD_Result completions_server::state::reply(MHD_Connection* to, unsigned status, const char* type,
                                            const std::string& body) {
  MHD_Response* response = MHD_create_response_from_buffer(
      body.size(), const_cast<char*>(body.data()), MHD_RESPMEM_MUST_COPY);
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "Content-Security-Policy", policy);
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
  if (status == MHD_HTTP_UNAUTHORIZED)
    MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
  const MHD_Result out = MHD_queue_response(to, status, response);
  MHD_destroy_response(response);
  return out;
}

MHD_Result completions_server::state::on_request(void* self, MHD_Connection* to, const char* path,
                                                 const char* method, const char*,
                                                 const char* upload, size_t* size, void** seen) {
  auto& s = *static_cast<state*>(self);
  if (*seen == nullptr) {
    *seen = new request;
    const char* length =
        MHD_lookup_connection_value(to, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const std::string_view digits = length == nullptr ? "" : length;
    std::size_t bytes = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
    if (read.ec == std::errc::result_out_of_range || bytes > most_read_bytes)
      return refuse(to, {413, fmt::format("a request has at most {} bytes", most_request_bytes)});
    return MHD_YES;
  }
  auto& from = *static_cast<request*>(*seen);
  if (*size > 0) {
    // A client that sends reads no answer yet. So a long body is read to its end, within limits.
    from.bytes += *size;
    if (from.bytes > most_read_bytes) return MHD_NO;
    if (from.bytes <= most_request_bytes) from.body.append(upload, *size);
    *size = 0;
    return MHD_YES;
  }
  return s.answer(to, path, method, from);
}

MHD_Result completions_server::state::answer(MHD_Connection* to, const char* path,
                                             const char* method, request& from) {
  if (from.text) return answer_whole(to, from.text); // the text is over
  now(to, connection::taking);
  if (from.bytes > most_request_bytes)
    return refuse(to, {413, fmt::format("a request has at most {} bytes", most_request_bytes)});
  const auto header = [&](const char* name) -> std::optional<std::string_view> {
    const char* out = MHD_lookup_connection_value(to, MHD_HEADER_KIND, name);
    return out == nullptr ? std::nullopt : std::optional<std::string_view>(out);
  };
  auto what =
      read_order({method, path, header(MHD_HTTP_HEADER_HOST), header(MHD_HTTP_HEADER_AUTHORIZATION),
                  header(MHD_HTTP_HEADER_CONTENT_TYPE), from.body},
                 rules);
  if (const auto* why = std::get_if<http_refusal>(&what)) return refuse(to, *why);
  if (std::holds_alternative<page_order>(what))
    return reply(to, MHD_HTTP_OK, "text/html; charset=utf-8", options.page);
  if (const auto* models = std::get_if<models_order>(&what))
    return reply(to, MHD_HTTP_OK, "application/json", models_json(rules.model, models->one));
  return begin(to, from, std::get<completion_order>(std::move(what)));
}

MHD_Result completions_server::state::begin(MHD_Connection* to, request& from,
                                            completion_order order) {
  const auto& model = *options.model;
  auto prompt = model.encode(order.prompt);
  const auto room =
      room_for(order, prompt.size(), static_cast<std::size_t>(model.model->context()));
  if (!room) return refuse(to, {400, room.error(), {}, "context_length_exceeded"});
  writing what;
  what.prompt = prompt;
  what.tokens = *room;
  what.sampling = order.sampling;
  what.seed = order.seed ? *order.seed : std::random_device{}();
  const bool streams = order.stream, chat = order.chat;
  const std::lock_guard lock(guard);
  if (closing || texts.size() >= most_texts)
    return refuse(to, {429,
                       fmt::format("{} texts are being written: ask again later", most_texts),
                       {},
                       "too_many_texts"});
  auto text = std::make_shared<job>(std::move(order), model, std::move(prompt),
                                    fmt::format("{}-{}", chat ? "chatcmpl" : "cmpl", ++made));
  text->connection = to;
  what.on_token = [text](learn::token_id token) {
    std::lock_guard hold(text->guard);
    if (text->over) return;
    text->progress = steady::now();
    text->pending += text->answer.push(token);
    if (text->answer.stopped())
      text->finish();
    else if (!text->pending.empty())
      text->wake();
  };
  what.on_end = [text](const std::string& why) {
    std::lock_guard hold(text->guard);
    if (why.empty())
      text->finish();
    else
      text->fail({503, why});
  };
  // News of the text wait for `guard`, and find the text under its number.
  const auto number = options.write(std::move(what));
  {
    std::lock_guard hold(text->guard);
    text->writing = number;
  }
  texts.emplace(number, text);
  if (const auto found = connections.find(to); found != connections.end())
    found->second.doing = connection::writing;
  from.text = text;
  return streams ? answer_stream(to, text) : answer_whole(to, text);
}

MHD_Result completions_server::state::answer_whole(MHD_Connection* to,
                                                   const std::shared_ptr<job>& text) {
  std::lock_guard hold(text->guard);
  if (!text->over) {
    text->suspended = true;
    MHD_suspend_connection(to);
    return MHD_YES;
  }
  if (text->failed) return refuse(to, *text->failed);
  return reply(to, MHD_HTTP_OK, "application/json", text->answer.whole());
}

MHD_Result completions_server::state::answer_stream(MHD_Connection* to,
                                                    const std::shared_ptr<job>& text) {
  auto* reader = new std::shared_ptr<job>(text);
  MHD_Response* response =
      MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 16 * 1024, on_read, reader, on_free);
  if (response == nullptr) {
    delete reader;
    return MHD_NO;
  }
  MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "text/event-stream");
  MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
  MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
  const MHD_Result out = MHD_queue_response(to, MHD_HTTP_OK, response);
  MHD_destroy_response(response);
  return out;
}

ssize_t completions_server::state::on_read(void* of, uint64_t, char* into, size_t most) {
  auto& text = **static_cast<std::shared_ptr<job>*>(of);
  std::lock_guard hold(text.guard);
  text.took = steady::now();
  const auto count = std::min(most, text.pending.size() - text.sent);
  if (count == 0) {
    if (text.over) return MHD_CONTENT_READER_END_OF_STREAM;
    text.suspended = true;
    MHD_suspend_connection(text.connection);
    return 0;
  }
  std::memcpy(into, text.pending.data() + text.sent, count);
  text.sent += count;
  if (text.sent == text.pending.size()) {
    text.pending.clear();
    text.sent = 0;
  }
  return static_cast<ssize_t>(count);
}

void completions_server::state::drop(const std::shared_ptr<job>& which) {
  std::uint64_t number = 0;
  {
    std::lock_guard hold(which->guard);
    which->over = true;
    which->connection = nullptr;
    number = which->writing;
  }
  // No lock is held: the text's callbacks may wait for one.
  options.cancel(number);
  std::lock_guard lock(guard);
  texts.erase(number);
}

void completions_server::state::on_completed(void* self, MHD_Connection* of, void** seen,
                                             MHD_RequestTerminationCode) {
  auto& s = *static_cast<state*>(self);
  const std::unique_ptr<request> done(static_cast<request*>(*seen));
  *seen = nullptr;
  s.now(of, connection::asking);
  if (done && done->text) s.drop(done->text);
}

void completions_server::state::now(MHD_Connection* of, decltype(connection::doing) doing) {
  std::lock_guard lock(guard);
  if (const auto found = connections.find(of); found != connections.end()) {
    found->second.doing = doing;
    found->second.since = steady::now();
  }
}

void completions_server::state::on_connection(void* self, MHD_Connection* of, void**,
                                              MHD_ConnectionNotificationCode what) {
  auto& s = *static_cast<state*>(self);
  std::lock_guard lock(s.guard);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    const auto* info = MHD_get_connection_info(of, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != nullptr) s.connections[of] = {info->connect_fd, steady::now()};
  } else {
    // The system may reuse the descriptor from now on.
    s.connections.erase(of);
  }
}

/// Ends a text without tokens or without a client, and keeps a quiet stream open.
/// Requires: `guard` is held.
void completions_server::state::look_after(const std::shared_ptr<job>& each) {
  std::lock_guard hold(each->guard);
  const auto found = connections.find(each->connection);
  const int descriptor = found == connections.end() ? -1 : found->second.descriptor;
  const auto at = steady::now();
  if (each->over) return;
  if (at - each->progress > time_for_token)
    return each->fail({503,
                       "no token came for two minutes: the servers of some layers are gone",
                       {},
                       "no_server"});
  // Nobody reads from a suspended connection, so the end of its client is found here.
  char byte = 0;
  if (each->suspended && descriptor >= 0 &&
      recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0)
    return each->fail({499, "the client has gone"});
  if (!each->suspended && at - each->took > time_to_take && descriptor >= 0)
    shutdown(descriptor, SHUT_RDWR);
  if (each->suspended && each->answer.order().stream && at - each->beat > time_between_beats) {
    each->beat = at;
    each->pending += ": waiting\n\n";
    each->wake();
  }
}

void completions_server::state::tick() {
  std::unique_lock lock(guard);
  while (!closing) {
    ends.wait_for(lock, std::chrono::milliseconds(500));
    for (const auto& [of, one] : connections) {
      const auto waited = steady::now() - one.since;
      if ((one.doing == connection::asking && waited > time_to_ask) ||
          (one.doing == connection::taking && waited > time_to_take))
        shutdown(one.descriptor, SHUT_RDWR);
    }
    for (const auto& [number, each] : texts) look_after(each);
  }
}

completions_server::state::~state() {
  {
    std::lock_guard lock(guard);
    closing = true;
    for (const auto& [number, each] : texts) {
      std::lock_guard hold(each->guard);
      each->fail({503, "the server ends"});
    }
  }
  ends.notify_all();
  if (ticker.joinable()) ticker.join();
  // Completes all requests, which cancels their texts. Requires that no connection is suspended.
  if (daemon != nullptr) MHD_stop_daemon(daemon);
}

completions_server::completions_server(std::unique_ptr<state> s, std::string url)
    : state_(std::move(s)), url_(std::move(url)) {}
completions_server::~completions_server() = default;

void completions_server::tell(const inference_news& news) {
  std::lock_guard lock(state_->guard);
  const auto found = state_->texts.find(news.writing);
  if (found == state_->texts.end()) return;
  auto& text = *found->second;
  std::lock_guard hold(text.guard);
  if (text.over || !text.answer.order().stream || !text.answer.order().news) return;
  text.pending += news_event(news);
  text.wake();
}

result<std::unique_ptr<completions_server>>
completions_server::listen(completions_options options) {
  const auto wanted = parse_listen_address(options.address);
  if (!wanted) return failure{wanted.error()};
  if (!wanted->loopback() && options.token.empty())
    return failure{fmt::format("other machines reach {}: give a token for access, or listen at "
                               "127.0.0.1",
                               wanted->text())};
  auto s = std::make_unique<state>();
  s->rules.token = options.token;
  s->rules.model = options.model->name;
  if (!wanted->loopback()) s->rules.machine = machine_name();
  s->rules.own_host = wanted->v6 ? "[" + wanted->host + "]" : wanted->host;
  s->options = std::move(options);
  for (int tries = 1;; ++tries) {
    auto at = *wanted;
    const auto port = try_to_listen(at);
    if (!port) return failure{fmt::format("cannot listen at {}: {}", at.text(), port.error())};
    at.port = *port;
    sockaddr_storage where{};
    at.fill(where);
    const unsigned v6 = at.v6 ? static_cast<unsigned>(MHD_USE_IPv6) : 0U;
    s->daemon = MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | v6, at.port, nullptr, nullptr,
        state::on_request, s.get(), MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_CONNECTION_LIMIT,
        most_connections, MHD_OPTION_CONNECTION_TIMEOUT, idle_seconds,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, header_bytes + 16 * 1024, MHD_OPTION_THREAD_STACK_SIZE,
        std::size_t{1} << 20, MHD_OPTION_NOTIFY_CONNECTION, state::on_connection, s.get(),
        MHD_OPTION_NOTIFY_COMPLETED, state::on_completed, s.get(), MHD_OPTION_END);
    if (s->daemon != nullptr) {
      s->ticker = std::thread([raw = s.get()] { raw->tick(); });
      auto url = fmt::format("http://{}/", at.text());
      return std::unique_ptr<completions_server>(
          new completions_server(std::move(s), std::move(url)));
    }
    // Another process may have taken the free port in between.
    if (wanted->port != 0 || tries == 10)
      return failure{fmt::format("cannot listen at {}: the server does not start", at.text())};
  }
}

} // namespace shoal::scenarios
