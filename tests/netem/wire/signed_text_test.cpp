#include "netem/wire/signed_text.hpp"
#include "tests/netem/wire/swarm.hpp"

using namespace shoal::netem::wire;

TEST_CASE("a signed text is read back with its node's name and a changed one is refused") {
  const auto reef = new_moderator(), other = new_moderator("atoll");
  const auto key = signing_key::make();
  const auto certificate = admit(reef, "lab-3", key);
  const std::string text = "epoch: 7\nsignature: of a kind\nsamples: 512\n";
  const auto file = sign_text("contribution", text, key, certificate);
  const auto read = read_signed_text(file, "contribution", reef.certificate_pem(), now);
  REQUIRE_MESSAGE(read.ok(), read.error());
  CHECK(read->text == text);
  CHECK(read->name == "lab-3");
  CHECK(read->serial == read_certificate(certificate)->serial);

  const auto refusal = [&](const std::string& what, const char* kind = "contribution",
                           const moderator* by = nullptr, std::int64_t when = now) {
    const auto out = read_signed_text(what, kind, (by ? by : &reef)->certificate_pem(), when);
    return out ? std::string{} : out.error();
  };
  CHECK(has(refusal(file, "greeting"), "something else"));
  CHECK(has(refusal(file, "contribution", &other), "the certificate in it: "));
  CHECK(has(refusal(file, "contribution", nullptr, after(31 * day)), "expired"));
  CHECK(has(refusal(text), "its signature is damaged"));
  CHECK(has(refusal("samples: 512\n"), "it is not signed"));
  // The certificate does not belong to the signing key.
  CHECK(has(refusal(sign_text("contribution", text, signing_key::make(), certificate)),
            "it was changed after 'lab-3' signed it"));
  for (std::size_t at = 0; at < file.size(); ++at) {
    CAPTURE(at);
    auto changed = file;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    // Text outside the block of a PEM file is ignored.
    if (const auto same = read_signed_text(changed, "contribution", reef.certificate_pem(), now))
      CHECK(same->text == text);
    if (at > 0) CHECK_FALSE(refusal(file.substr(0, at)).empty());
    if (at == file.size() - 2) break;
  }
}
