#include "netem/wire/revocation.hpp"
#include "tests/netem/wire/fake_pipe.hpp"

#include <doctest/doctest.h>

using namespace shoal::netem::wire;

namespace {

class fake_admission final : public admission {
public:
  refusal check(const std::string& certificate, std::int64_t, certified_member& who,
                std::string& detail) const override {
    who.name = certificate;
    detail = certificate + " is on the list";
    return certificate == "mallory" ? refusal::revoked
           : certificate == "old"   ? refusal::expired
                                    : refusal::none;
  }
  std::uint64_t revocation_list_number() const override { return number; }
  std::string revocation_list_pem() const override { return pem; }
  revocation_list_news offer(const std::string& list, std::string&) const override {
    return list == pem ? revocation_list_news::known : revocation_list_news::taken;
  }

  std::uint64_t number = 4;
  std::string pem = "a list";
};

} // namespace

TEST_CASE("without keys no certificate is revoked and no list is news") {
  revocation none(nullptr);
  CHECK_FALSE(none.enabled());
  CHECK_FALSE(none.is_behind());
  CHECK_FALSE(none.is_news_to(0));
  CHECK_FALSE(none.revoked("mallory", 0));
}

TEST_CASE("a list is sent to hosts with a smaller number") {
  const auto keys = std::make_shared<fake_admission>();
  revocation lists(keys);
  CHECK(lists.number() == 4);
  CHECK(lists.is_news_to(3));
  CHECK_FALSE(lists.is_news_to(4));
  CHECK_FALSE(lists.is_news_to(5));
  const auto sent = lists.newest_list_frame();
  REQUIRE(sent);
  frame_reader in(bytes_of(*sent));
  CHECK(in.get<std::uint8_t>() == static_cast<std::uint8_t>(frame_kind::revocation_list));
  CHECK(in.text(longest_revocation_list) == "a list");
  CHECK(in.finished());
}

TEST_CASE("a newer list on this machine is reported until the links are checked against it") {
  const auto keys = std::make_shared<fake_admission>();
  revocation lists(keys);
  CHECK_FALSE(lists.is_behind());
  keys->number = 5;
  CHECK(lists.is_behind());
  CHECK_FALSE(lists.is_news_to(4)); // the list is sent after the links were checked
  lists.adopt();
  CHECK_FALSE(lists.is_behind());
  CHECK(lists.is_news_to(4));
}

TEST_CASE("a revoked certificate is distinct from one that is refused for another reason") {
  const revocation lists(std::make_shared<fake_admission>());
  CHECK(lists.revoked("mallory", 0) == "mallory is on the list");
  CHECK_FALSE(lists.revoked("old", 0));
  CHECK_FALSE(lists.revoked("lab-1", 0));
}

TEST_CASE("a list that is too long for a frame is not sent") {
  const auto keys = std::make_shared<fake_admission>();
  keys->pem.assign(longest_revocation_list, 'x');
  CHECK(revocation(keys).newest_list_frame());
  keys->pem += 'x';
  CHECK_FALSE(revocation(keys).newest_list_frame());
}
