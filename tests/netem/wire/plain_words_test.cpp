#include "netem/wire/end_reasons.hpp"
#include "netem/wire/plain_words.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

TEST_CASE("reasons of gRPC are told in plain words and other texts stay") {
  CHECK(
      in_plain_words("failed to connect to all addresses; last error: UNKNOWN: "
                     "ipv4:127.0.0.1:7000: Failed to connect to remote host: Connection refused") ==
      "nothing listens there yet");
  CHECK(in_plain_words("recvmsg:Connection reset by peer") == "it closed the connection");
  CHECK(in_plain_words("the other side is gone") == "the other side is gone");
  CHECK(in_plain_words("") == "");
}

TEST_CASE("a refused connection says that nothing listens and other failures do not") {
  CHECK(
      nothing_listens("failed to connect to all addresses; last error: UNKNOWN: "
                      "ipv4:127.0.0.1:7000: Failed to connect to remote host: Connection refused"));
  CHECK_FALSE(nothing_listens("recvmsg:Connection reset by peer"));
  CHECK_FALSE(nothing_listens("Deadline Exceeded"));
}

TEST_CASE("the end of a link names the host and tells a goodbye from a loss") {
  CHECK(end_in_words("ada", "10.0.0.7:7000", std::string(has_ended)) ==
        "ada (10.0.0.7:7000) has ended");
  CHECK(end_in_words("ada", "", "Socket closed") == "lost ada: it closed the connection");
}
