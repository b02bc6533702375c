#include "workers/programs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <sodium.h>

#include "pif/base/assert.h"
#include "pif/component/build.h"

namespace pif::lfs {

struct Programs::Arrival::Hash {
  crypto_generichash_state state;
};

Programs::Arrival::Arrival(Programs& programs, std::uint32_t uid, std::string build, std::uint64_t size)
    : programs_(programs),
      uid_(uid),
      build_(std::move(build)),
      size_(size),
      path_(programs.path_of(fmt::format("new-{}", ++programs.arrivals_))),
      hash_(std::make_unique<Hash>()) {
  crypto_generichash_init(&hash_->state, nullptr, 0, crypto_generichash_BYTES);
  programs_.coming_[uid_] += size_;
}

Programs::Arrival::~Arrival() {
  const auto of_user = programs_.coming_.find(uid_);
  PIF_ASSERT(of_user != programs_.coming_.end() && of_user->second >= size_, uid_, size_);
  if ((of_user->second -= size_) == 0) programs_.coming_.erase(of_user);
  if (file_) (void)programs_.storage_.remove(path_).has_value();  // at worst until the next start
}

Programs::Programs(component::Storage& storage, Clock& clock, std::string folder)
    : storage_(storage), clock_(clock), folder_(std::move(folder)) {}

Result<std::unique_ptr<Programs::Arrival>> Programs::begin(std::uint32_t uid, std::string build, std::uint64_t size) {
  PIF_TRY(check_room(uid, size));
  PIF_TRY(storage_.make_folder(folder_));
  PIF_TRY(make_room(size));
  std::unique_ptr<Arrival> arrival(new Arrival(*this, uid, std::move(build), size));
  PIF_TRY_VALUE(arrival->file_, storage_.open(arrival->path_, component::OpenMode::kCreate));
  return arrival;
}

Status Programs::check_room(std::uint32_t uid, std::uint64_t size) const {
  if (size > kProgramBytesMax) {
    return fail(Code::kTooLarge, fmt::format("a program of {} bytes; at most {} are brought to where it is not", size,
                                             kProgramBytesMax));
  }
  const auto of_user = coming_.find(uid);
  const std::uint64_t of_user_bytes = of_user == coming_.end() ? 0 : of_user->second;
  if (coming_bytes() + size <= kProgramsBytesMax && of_user_bytes + size <= kUserProgramsMax) return {};
  return fail(Code::kBusy, "too many programs are being brought here at once: try again in a moment");
}

std::uint64_t Programs::coming_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [uid, of_user] : coming_) bytes += of_user;
  return bytes;
}

// A process that runs a program keeps it when it goes.
Status Programs::make_room(std::uint64_t bytes) {
  while (!stored_.empty() &&
         (stored_bytes_ + coming_bytes() + bytes > kProgramsBytesMax || stored_.size() >= kProgramsMax))
    PIF_TRY(remove_oldest());
  return {};
}

Status Programs::remove_oldest() {
  const auto oldest = std::min_element(stored_.begin(), stored_.end(),
                                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
  PIF_ASSERT(oldest != stored_.end() && stored_bytes_ >= oldest->second.bytes, stored_bytes_);
  PIF_TRY(storage_.remove(path_of(oldest->first)));
  stored_bytes_ -= oldest->second.bytes;
  stored_.erase(oldest);
  return {};
}

Status Programs::add(Arrival& arrival, std::uint64_t at, std::span<const std::byte> bytes) {
  if (!arrival.file_ || at != arrival.come_ || bytes.size() > arrival.size_ - arrival.come_) {
    return fail(Code::kInvalid, fmt::format("bytes {} to {} of a program came, where {} of {} have come", at,
                                            at + bytes.size(), arrival.come_, arrival.size_));
  }
  PIF_TRY(arrival.file_->write(at, bytes));
  crypto_generichash_update(&arrival.hash_->state, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  arrival.come_ += bytes.size();
  PIF_ASSERT(arrival.come_ <= arrival.size_, arrival.come_, arrival.size_);
  return arrival.come_ == arrival.size_ ? finish(arrival) : Status();
}

Status Programs::finish(Arrival& arrival) {
  PIF_TRY_VALUE(const auto written, storage_.open(arrival.path_, component::OpenMode::kRead));
  if (component::build_of(*written) != arrival.build_)
    return fail(Code::kInvalid, "the program that came is another build than its controller said");
  std::array<unsigned char, crypto_generichash_BYTES> hash{};
  crypto_generichash_final(&arrival.hash_->state, hash.data(), hash.size());
  const std::string name = fmt::format("{:02x}", fmt::join(hash, ""));
  PIF_TRY(storage_.rename(arrival.path_, path_of(name)));  // over the same content
  arrival.file_.reset();                                   // what somebody may write to cannot be run
  Stored& stored = stored_[name];
  if (stored.holders.empty()) stored_bytes_ += arrival.size_;
  stored.bytes = arrival.size_;
  stored.holders.emplace(arrival.uid_, arrival.build_);
  stored.used = clock_.now();
  return {};
}

std::optional<Handle> Programs::find(std::uint32_t uid, const std::string& build) {
  const auto found = std::find_if(stored_.begin(), stored_.end(), [&](const auto& one) {
    return one.second.holders.contains({uid, build});
  });
  if (build.empty() || found == stored_.end()) return std::nullopt;
  const auto file = storage_.open(path_of(found->first), component::OpenMode::kRead);
  auto handle = file ? (*file)->share() : Result<Handle>(fail(file.error()));
  if (!handle) {  // somebody has removed it
    stored_bytes_ -= found->second.bytes;
    stored_.erase(found);
    return std::nullopt;
  }
  found->second.used = clock_.now();
  return std::move(*handle);
}

}  // namespace pif::lfs
