#include "netem/wire/credentials.hpp"

#include "netem/wire/certificates.hpp"
#include "netem/wire/key_files.hpp"
#include "netem/wire/node_keys.hpp"
#include "netem/wire/signed_text.hpp"

#include <chrono>
#include <mutex>

namespace shoal::netem::wire {

namespace {

class moderated final : public admission {
public:
  moderated(std::filesystem::path list, std::string ca, revocation_list revoked)
      : list_(std::move(list)), ca_(std::move(ca)), revoked_(std::move(revoked)),
        read_at_(changed_at()) {}

  refusal check(const std::string& certificate, std::int64_t utc_ns, certified_member& who,
                std::string& detail) const override {
    const auto facts = read_certificate(certificate);
    if (!facts) {
      detail = facts.error();
      return refusal::not_admitted;
    }
    if (const auto issued = check_issued(certificate, ca_, utc_ns); !issued) {
      detail = issued.error();
      // Finds out whether the time is the only fault of the certificate.
      const bool was_good =
          facts->not_after_utc_ns < utc_ns &&
          check_issued(certificate, ca_, facts->not_after_utc_ns - 1'000'000'000).ok();
      return was_good ? refusal::expired : refusal::not_admitted;
    }
    std::lock_guard guard(mutex_);
    read_again();
    if (revoked_.revoked(facts->serial)) {
      detail = "the certificate of " + facts->name + " was revoked";
      return refusal::revoked;
    }
    who.name = facts->name;
    who.identity.assign(reinterpret_cast<const char*>(facts->public_key.data()),
                        facts->public_key.size());
    return refusal::none;
  }

  std::uint64_t revocation_list_number() const override {
    std::lock_guard guard(mutex_);
    read_again();
    return revoked_.number();
  }
  std::string revocation_list_pem() const override {
    std::lock_guard guard(mutex_);
    return revoked_.pem();
  }
  revocation_list_news offer(const std::string& pem, std::string& detail) const override {
    auto list = revocation_list::read(pem, ca_);
    if (!list) return revocation_list_news::forged;
    std::lock_guard guard(mutex_);
    read_again();
    if (list->number() <= revoked_.number())
      return list->number() == revoked_.number() ? revocation_list_news::known
                                                 : revocation_list_news::old;
    revoked_ = std::move(*list);
    // The list takes effect even if it cannot be saved.
    if (const auto kept = write_text(list_, pem); !kept) detail = kept.error();
    read_at_ = changed_at();
    return revocation_list_news::taken;
  }

private:
  std::filesystem::file_time_type changed_at() const {
    std::error_code failed;
    return std::filesystem::last_write_time(list_, failed);
  }
  void read_again() const {
    const auto changed = changed_at();
    if (changed == read_at_) return;
    read_at_ = changed;
    // An older list, a half-written file, or a file that others may write changes nothing.
    const auto pem = read_trusted(list_);
    if (!pem) return;
    if (auto list = revocation_list::read(*pem, ca_); list && list->number() > revoked_.number())
      revoked_ = std::move(*list);
  }

  const std::filesystem::path list_;
  const std::string ca_;
  mutable std::mutex mutex_; // guards the members below
  mutable revocation_list revoked_;
  mutable std::filesystem::file_time_type read_at_;
};

} // namespace

result<credentials> load_credentials(const std::filesystem::path& folder) {
  auto keys = load_node_keys(folder, utc_now());
  if (!keys) return failure{keys.error()};
  auto revoked = revocation_list::read(keys->crl_pem, keys->ca_pem);
  if (!revoked) return failure{revoked.error()};
  credentials out;
  out.name = keys->name;
  auto tls = tls_credentials::make(keys->key_pem.view(), keys->certificate_pem, keys->ca_pem);
  if (!tls) return failure{tls.error()};
  out.tls = std::move(*tls);
  const auto own = signing_key::read(keys->key_pem.view());
  if (!own) return failure{own.error()};
  out.key = std::make_shared<const signing_key>(*own);
  out.certificate = keys->certificate_pem;
  out.sign = [own = *own, certificate = keys->certificate_pem](std::string_view kind,
                                                               std::string_view text) {
    return sign_text(kind, text, own, certificate);
  };
  out.admits =
      std::make_shared<moderated>(folder / revocation_list_file, keys->ca_pem, std::move(*revoked));
  return out;
}

} // namespace shoal::netem::wire
