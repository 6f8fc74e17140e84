#include "scenarios/observe/metrics.hpp"
#include "scenarios/observe/metrics_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::scenarios;

namespace {

/// The answer to an HTTP GET of a URL at 127.0.0.1, headers included.
std::string get(const std::string& url, const std::string& headers = "") {
  const std::size_t colon = url.rfind(':');
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(std::stoi(url.substr(colon + 1))));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(connect(descriptor, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
  const std::string request =
      "GET " + url.substr(url.find('/', colon)) + " HTTP/1.0\r\n" + headers + "\r\n";
  REQUIRE(write(descriptor, request.data(), request.size()) ==
          static_cast<ssize_t>(request.size()));
  std::string out;
  char buffer[4096];
  for (ssize_t count; (count = read(descriptor, buffer, sizeof buffer)) > 0;)
    out.append(buffer, static_cast<std::size_t>(count));
  close(descriptor);
  return out;
}

} // namespace

TEST_CASE("metrics are served as they are now, and no longer than they live") {
  auto server = metrics_server::listen("127.0.0.1:0");
  REQUIRE_MESSAGE(server.ok(), server.error());
  const std::string& url = (*server)->url();
  CHECK(url.starts_with("http://127.0.0.1:"));
  CHECK(get(url).find("shoal_") == std::string::npos);
  {
    metrics values;
    (*server)->serve(values.registry());
    values.set(metric::epoch, 3);
    CHECK(get(url).find("\nshoal_epoch 3\n") != std::string::npos);
    values.set(metric::epoch, 4);
    CHECK(get(url).find("\nshoal_epoch 4\n") != std::string::npos);
  }
  CHECK(get(url).find("shoal_epoch") == std::string::npos);
}

TEST_CASE("metrics are served to no page that makes a browser ask under a foreign name") {
  for (const char* at : {"127.0.0.1:0", "0.0.0.0:0"}) {
    auto server = metrics_server::listen(at);
    REQUIRE_MESSAGE(server.ok(), server.error());
    metrics values;
    (*server)->serve(values.registry());
    const auto serves = [&](const std::string& name) {
      return get((*server)->url(), "Host: " + name + "\r\n").find("shoal_epoch") !=
             std::string::npos;
    };
    for (const char* own : {"localhost:9464", "127.0.0.1", "10.1.2.3:9464", "[::1]:9464"})
      CHECK(serves(own));
    for (const char* foreign : {"evil.example", "evil.example:9464", "127.0.0.1.evil.example"})
      CHECK_FALSE(serves(foreign));
  }
}

TEST_CASE("scrapers that read nothing delay no other one") {
  auto server = metrics_server::listen("127.0.0.1:0");
  REQUIRE_MESSAGE(server.ok(), server.error());
  metrics values;
  (*server)->serve(values.registry());
  const auto port = std::stoi((*server)->url().substr(std::string("http://127.0.0.1:").size()));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::vector<int> slow;
  for (int i = 0; i < 20; ++i) {
    slow.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(slow.back(), reinterpret_cast<sockaddr*>(&to), sizeof to) == 0);
    const std::string half = i % 2 == 0 ? "GET /met" : "GET /metrics HTTP/1.1\r\n\r\n";
    REQUIRE(write(slow.back(), half.data(), half.size()) == static_cast<ssize_t>(half.size()));
  }
  CHECK(get((*server)->url()).find("shoal_epoch") != std::string::npos);
  for (const int each : slow) close(each);
}

TEST_CASE("an address that is none, or that cannot be had, is refused with the reason") {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "'' has no port: write ADDRESS:PORT, or :PORT for this machine alone"},
      {"9464", "'9464' has no ':' before the port: write :9464 for this machine alone, or "
               "0.0.0.0:9464 for others, too"},
      {"127.0.0.1", "'127.0.0.1' has no port: write ADDRESS:PORT, or :PORT for this machine alone"},
      {"127.0.0.1:", "'' in '127.0.0.1:' is no port from 0 to 65535"},
      {"127.0.0.1:x", "'x' in '127.0.0.1:x' is no port from 0 to 65535"},
      {"127.0.0.1:70000", "'70000' in '127.0.0.1:70000' is no port from 0 to 65535"},
      {"lab-3:9464", "'lab-3' in 'lab-3:9464' is no address in digits: 0.0.0.0 stands for all "
                     "addresses of this machine, and an IPv6 address is in brackets"},
      {"::1:9464", "'::1' in '::1:9464' is no address in digits: 0.0.0.0 stands for all addresses "
                   "of this machine, and an IPv6 address is in brackets"},
      {"[::1:9464", "'[::1' in '[::1:9464' is no address in digits: 0.0.0.0 stands for all "
                    "addresses of this machine, and an IPv6 address is in brackets"}};
  for (const auto& [address, why] : wrong) {
    const auto server = metrics_server::listen(address);
    REQUIRE(!server.ok());
    CHECK(server.error() == why);
  }
  const auto first = metrics_server::listen("localhost:0");
  REQUIRE(first.ok());
  const std::string at = (*first)->url().substr(7, (*first)->url().find("/metrics") - 7);
  const auto second = metrics_server::listen(at);
  REQUIRE(!second.ok());
  CHECK(second.error() == "cannot serve metrics at " + at + ": Address already in use");
  const auto elsewhere =
      metrics_server::listen("192.0.2.1:0"); // RFC 5737: the address of no machine
  REQUIRE(!elsewhere.ok());
  CHECK(elsewhere.error().ends_with("Cannot assign requested address"));
}
