// Credentials and capabilities: what is accepted must be what the cluster minted, and nothing else.
#include "fuzz.h"
#include "pif/base/capability.h"

namespace {

using namespace pif;
using fuzz::must;

constexpr std::int64_t kNow = 1'700'000'000;

ClusterKey test_key() {
  ClusterKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::byte>(i);
  return key;
}

const ClusterKey kKey = test_key();

void check_strange(std::string_view packed, std::int64_t now) {
  if (const auto credential = verify_credential(kKey, packed, now))
    must(mint(kKey, *credential) == packed, "an accepted credential is one that was minted");
  if (const auto capability = verify_capability(kKey, packed, now))
    must(mint(kKey, *capability) == packed, "an accepted capability is one that was minted");
}

Capability capability_of(fuzz::Input& in) {
  Capability out;
  out.file = FileId(in.wide());
  out.uid = static_cast<std::uint32_t>(in.wide());
  out.rights = in.byte();
  out.epoch = in.wide();
  out.expiry = static_cast<std::int64_t>(in.wide());
  return out;
}

Credential credential_of(fuzz::Input& in) {
  Credential out;
  out.session = SessionId(in.wide());
  out.uid = static_cast<std::uint32_t>(in.wide());
  out.expiry = static_cast<std::int64_t>(in.wide());
  for (unsigned count = in.byte(); count > 0; --count) out.gids.push_back(static_cast<std::uint32_t>(in.wide()));
  return out;
}

// Damages a good one in one place, or cuts it: refused, whatever it says.
void check_damaged(std::string packed, fuzz::Input& in) {
  const std::size_t at = in.word() % packed.size();
  const auto flip = static_cast<char>(in.byte());
  if (flip == 0)
    packed.resize(at);
  else
    packed[at] = static_cast<char>(packed[at] ^ flip);
  must(!verify_credential(kKey, packed, kNow), "a damaged credential is refused");
  must(!verify_capability(kKey, packed, kNow), "a damaged capability is refused");
}

void check_capability(fuzz::Input& in) {
  const Capability good = capability_of(in);
  const std::string packed = mint(kKey, good);
  const auto back = verify_capability(kKey, packed, kNow);
  must(back.has_value() == (good.expiry >= kNow - kClockSkewSeconds), "a capability is good until it expires");
  must(!back || (back->file == good.file && back->epoch == good.epoch && back->rights == good.rights),
       "and says the same");
  const FileId file(in.wide());
  const std::uint32_t rights = in.byte();
  const auto uid = static_cast<std::uint32_t>(in.wide());
  const bool any_file = good.file.value == 0 && (good.rights & kMayManage) != 0;
  const bool holds = (good.file == file || any_file) && (good.rights & rights) == rights && good.uid == uid;
  must(require(good, file, rights, uid).has_value() == holds, "require() asks for file, rights and holder");
  check_damaged(packed, in);
}

void check_credential(fuzz::Input& in) {
  const Credential good = credential_of(in);
  const std::string packed = mint(kKey, good);
  const auto back = verify_credential(kKey, packed, kNow);
  const bool holds = !good.gids.empty() && good.expiry >= kNow - kClockSkewSeconds;
  must(back.has_value() == holds, "a credential with a group is good until it expires");
  must(!back || (back->uid == good.uid && back->session == good.session), "and says the same");
  check_damaged(packed, in);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input in(data, size);
  switch (in.byte() % 3) {
    case 0: {
      const auto now = static_cast<std::int64_t>(in.wide() >> 1);  // a clock after 1970
      check_strange(in.rest(), now);
      break;
    }
    case 1: check_capability(in); break;
    default: check_credential(in); break;
  }
  return 0;
}

std::vector<std::pair<std::string, std::string>> pif::fuzz::seeds() {
  const std::string capability = mint(kKey, Capability{FileId(77), 1000, kMayRead, 2, kNow + 600});
  const std::string credential = mint(kKey, Credential{SessionId(5), 1000, {1000, 4, 27}, kNow + 600});
  const auto fields = [](unsigned kind) { return std::move(Output().byte(kind).wide(77).wide(1000)); };
  return {
      {"capability-bytes", Output().byte(0).wide(kNow).bytes(capability).str()},
      {"credential-bytes", Output().byte(0).wide(kNow).bytes(credential).str()},
      {"capability",
       fields(1).byte(kMayRead).wide(2).wide(kNow).wide(77).byte(kMayRead).wide(1000).word(3).byte(1).str()},
      {"manage", Output().byte(1).wide(0).wide(0).byte(kMayManage).wide(0).wide(kNow).wide(9).byte(8).str()},
      {"credential", fields(2).wide(kNow).byte(2).wide(1000).wide(4).word(9).byte(1).str()},
      {"expired", fields(2).wide(kNow - 100).byte(1).wide(1000).str()},
      {"extreme-expiry", fields(2).wide(0x8000000000000000).byte(1).wide(1000).str()},
      {"extreme-now", Output().byte(0).wide(0x8000000000000000).bytes(capability).str()},
  };
}
