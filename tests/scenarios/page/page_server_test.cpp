#include "scenarios/page/page_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

std::uint16_t port_of(const page_server& server) {
  const std::string& url = server.url();
  return static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

struct client {
  int descriptor = -1;

  explicit client(const page_server& server)
      : descriptor(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port_of(server));
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(connect(descriptor, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  }
  ~client() { close(descriptor); }
  client(const client&) = delete;

  void say(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = send(descriptor, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return; // the client has heard enough
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  /// The received text, until it holds `last` or the other side closes.
  std::string hear(std::string_view last = {}) const {
    std::string out;
    char buffer[65536];
    for (;;) {
      if (!last.empty() && out.find(last) != std::string::npos) return out;
      const ssize_t n = recv(descriptor, buffer, sizeof buffer, 0);
      if (n <= 0) return out;
      out.append(buffer, static_cast<std::size_t>(n));
    }
  }
};

std::string ask(const page_server& server, const std::string& request) {
  const client one(server);
  one.say(request);
  return one.hear();
}

std::string get(const page_server& server, const std::string& path, const std::string& more = "") {
  return ask(
      server,
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{}\r\n", path, more));
}

int status_of(const std::string& answer) {
  return answer.starts_with("HTTP/1.") ? std::stoi(answer.substr(9, 3)) : 0;
}

struct served {
  std::shared_ptr<page_feed> feed = std::make_shared<page_feed>(run_place{"one \"run\""});
  std::unique_ptr<page_server> server;

  served() {
    feed->publish({{"run", R"({"name":"x"})"}, {"series", "[1]"}});
    auto made = page_server::listen("127.0.0.1:0", "<!doctype html><p>the page</p>", {feed});
    REQUIRE_MESSAGE(made.ok(), made.error());
    server = std::move(*made);
  }
};

constexpr const char* events = "GET /runs/0/events HTTP/1.1\r\nHost: localhost\r\n\r\n";

} // namespace

TEST_CASE("the page, the list of runs, and their events are served") {
  served s;
  const std::string page = get(*s.server, "/");
  CHECK(status_of(page) == 200);
  CHECK(page.ends_with("<p>the page</p>"));
  CHECK(page.find("Content-Security-Policy: default-src 'none'") != std::string::npos);
  CHECK(get(*s.server, "/runs")
            .ends_with("\r\n\r\n[{\"title\":\"one \\\"run\\\"\",\"beside\":null,\"of\":null}]"));
  s.feed->finish();
  const std::string all = get(*s.server, "/runs/0/events");
  CHECK(all.find("text/event-stream") != std::string::npos);
  CHECK(all.find(R"(data: {"sections":{"run":{"name":"x"},"series":[1]},"done":true})") !=
        std::string::npos);
}

TEST_CASE("a client that reads along gets news, and only news") {
  served s;
  const client one(*s.server);
  one.say(events);
  CHECK(one.hear("\"done\":false}").find(R"("run":{"name":"x"},"series":[1])") !=
        std::string::npos);
  CHECK(s.feed->readers() == 1);
  s.feed->publish({{"run", R"({"name":"x"})"}, {"series", "[1,2]"}});
  const std::string news = one.hear("\"done\":false}");
  CHECK(news.find(R"({"series":[1,2]})") != std::string::npos);
  CHECK(news.find("name") == std::string::npos);
  s.feed->finish();
  CHECK(one.hear("\"done\":true}").find(R"("sections":{})") != std::string::npos);
  s.server->drain(std::chrono::seconds(10));
  // The server lets go of a reader on a thread of its own.
  for (int i = 0; i < 1000 && s.feed->readers() > 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(s.feed->readers() == 0);
}

TEST_CASE("no path leads to a file") {
  served s;
  for (const char* path :
       {"/../../../../etc/passwd", "/..%2f..%2f..%2fetc/passwd", "//etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd", "/runs/../../etc/passwd", "/runs/0/../../../etc/passwd",
        "/runs/1/events", "/runs/-1/events", "/runs/00/events", "/runs/0/events/", "/runs/0",
        "/runs/18446744073709551616/events", "/index.html", "/page.html", "/favicon.ico",
        "/\x01\xff", "/?x"}) {
    CAPTURE(path);
    const std::string answer = get(*s.server, path);
    CHECK(answer.find("root:") == std::string::npos);
    CHECK((status_of(answer) == 404 || status_of(answer) == 400 ||
           (std::string_view(path) == "/?x" && status_of(answer) == 200)));
  }
}

TEST_CASE("methods that change things, other names, and what is no request are refused") {
  served s;
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "NONSENSE"}) {
    CAPTURE(method);
    CHECK(status_of(ask(*s.server,
                        fmt::format("{} / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                                    method))) == 405);
  }
  // Another page's script that reaches us under its own name (DNS rebinding).
  CHECK(status_of(ask(*s.server,
                      "GET / HTTP/1.1\r\nHost: evil.example:80\r\nConnection: close\r\n\r\n")) ==
        403);
  for (const char* own : {"localhost:1", "127.0.0.1", "[::1]:8080"})
    CHECK(status_of(
              ask(*s.server, fmt::format("GET / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
                                         own))) == 200);
  for (const char* nonsense :
       {"\x16\x03\x01\x02\x01\x01", "GET\r\n\r\n", "\r\n\r\n\r\n", "GET / HTTP/9.9\r\n\r\n"}) {
    const client one(*s.server);
    one.say(nonsense);
    shutdown(one.descriptor, SHUT_WR);
    CHECK(status_of(one.hear()) != 200);
  }
  CHECK(status_of(get(*s.server, "/")) == 200);
}

TEST_CASE("a server that other machines reach answers to its addresses and not to foreign names") {
  const auto server = page_server::listen("0.0.0.0:0", "p", {});
  REQUIRE_MESSAGE(server.ok(), server.error());
  const auto status = [&](const char* name) {
    return status_of(ask(**server, fmt::format("GET / HTTP/1.1\r\nHost: {}\r\n"
                                               "Connection: close\r\n\r\n",
                                               name)));
  };
  for (const char* own : {"localhost:1", "127.0.0.1", "10.1.2.3:8080", "[fe80::1]:8080"})
    CHECK(status(own) == 200);
  for (const char* foreign : {"evil.example", "evil.example:8080", "1.2.3.4.evil.example", "[x]:1"})
    CHECK(status(foreign) == 403);
}

TEST_CASE("headers and bodies beyond all measure are refused") {
  served s;
  const std::string many(1 << 20, 'x');
  const std::string one = get(*s.server, "/", fmt::format("X: {}\r\n", many));
  CHECK((status_of(one) >= 400 || one.empty()));
  const std::string path = get(*s.server, "/" + many);
  CHECK((status_of(path) >= 400 || path.empty()));
  std::string lines;
  for (int i = 0; i < 20'000; ++i) lines += fmt::format("X-{}: y\r\n", i);
  const std::string several = get(*s.server, "/", lines);
  CHECK((status_of(several) >= 400 || several.empty()));
  const std::string body = ask(
      *s.server,
      fmt::format(
          "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{}",
          many.size(), many));
  CHECK(status_of(body) != 500);
  CHECK(status_of(get(*s.server, "/")) == 200);
}

TEST_CASE("five hundred slow clients keep nobody from publishing") {
  served s;
  // A quarter says half a request, a quarter asks for events and reads none of them, the others
  // just sit there.
  std::vector<std::unique_ptr<client>> slow;
  for (int i = 0; i < 500; ++i) {
    // A waiting client stays at the door: connecting does not wait for the server to accept.
    slow.push_back(std::make_unique<client>(*s.server));
    if (i % 4 == 0)
      slow.back()->say("GET / HTTP/1.1\r\nHost: loc");
    else if (i % 4 == 1)
      slow.back()->say(events);
  }
  const std::string large(1 << 20, 'y');
  for (int i = 0; i < 200; ++i) s.feed->publish({{"series", fmt::format("\"{}{}\"", i, large)}});
  CHECK(s.feed->readers() <= 64);
  // When they have gone, all is as before.
  slow.clear();
  CHECK(status_of(get(*s.server, "/")) == 200);
  const client one(*s.server);
  one.say(events);
  CHECK(one.hear("\"done\":false}").find("\"199y") != std::string::npos);
}

TEST_CASE("an address that cannot be had is refused with the reason, and loopback is what is meant "
          "without one") {
  const auto feed = std::make_shared<page_feed>(run_place{"x"});
  const auto first = page_server::listen(":0", "p", {feed});
  REQUIRE_MESSAGE(first.ok(), first.error());
  CHECK((*first)->url().starts_with("http://127.0.0.1:"));
  const auto taken = page_server::listen(fmt::format(":{}", port_of(**first)), "p", {});
  REQUIRE(!taken.ok());
  CHECK(taken.error() ==
        fmt::format("cannot serve the page at 127.0.0.1:{}: Address already in use",
                    port_of(**first)));
  CHECK(!page_server::listen("nonsense", "p", {}).ok());
}
