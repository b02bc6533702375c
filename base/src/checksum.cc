#include "pif/base/checksum.h"

#include <xxhash.h>
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the widest vectors this processor has, not those of the oldest: the same sums, sooner
#endif

#include "pif/base/assert.h"

namespace pif {
namespace {

// A bijective finaliser (splitmix64), so that neighbouring chunks differ in many bits.
std::uint64_t scramble(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t hash_bytes(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

struct HashStream::State {
  State() : xxh(XXH3_createState()) { PIF_ASSERT(xxh != nullptr); }
  ~State() { XXH3_freeState(xxh); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  XXH3_state_t* const xxh;
};

HashStream::HashStream() : state_(std::make_unique<State>()) { reset(); }
HashStream::~HashStream() = default;
void HashStream::add(std::span<const std::byte> bytes) { XXH3_64bits_update(state_->xxh, bytes.data(), bytes.size()); }
std::uint64_t HashStream::value() const { return XXH3_64bits_digest(state_->xxh); }
void HashStream::reset() { XXH3_64bits_reset(state_->xxh); }

std::uint64_t chunk_mix(FileId file, std::uint32_t stream, std::uint64_t chunk) {
  return scramble(scramble(file.value ^ (std::uint64_t{stream} << 56)) ^ chunk);
}

std::uint64_t stamp_mix(std::uint64_t stamp) { return scramble(stamp); }

}  // namespace pif
