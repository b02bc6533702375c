// Opening, closing, and all that changes a file's length: what processes do together.
#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <utility>

#include "file.h"
#include "pif/base/assert.h"
#include "session.h"

namespace pif::mpi {
namespace {

constexpr std::size_t kCopyBytes = 4u << 20;

std::string hint(MPI_Info info, const char* key) {
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int is_there = 0;
  if (info == MPI_INFO_NULL) return {};
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &is_there);
  return is_there != 0 ? std::string(value.data()) : std::string();
}

// The decimal numbers in a hint. Anything else in it is passed over: as MPI has it, an impossible hint is no error.
std::vector<std::uint32_t> numbers_in(const std::string& text) {
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint32_t number = 0;
    const auto [behind, error] = std::from_chars(at, end, number);
    if (error == std::errc()) out.push_back(number);
    at = std::max(behind, at + 1);
  }
  return out;
}

std::uint32_t number_in(const std::string& text) {
  const std::vector<std::uint32_t> all = numbers_in(text);
  return all.empty() ? 0 : all.front();
}

}  // namespace

// ---- opening ----

Outcome File::check_amode() const {
  const int ways = std::popcount(static_cast<unsigned>(amode_ & (MPI_MODE_RDONLY | MPI_MODE_WRONLY | MPI_MODE_RDWR)));
  if (ways != 1) return {MPI_ERR_AMODE, "a file is opened to read, to write, or for both"};
  if ((amode_ & MPI_MODE_RDONLY) != 0 && (amode_ & (MPI_MODE_CREATE | MPI_MODE_EXCL)) != 0)
    return {MPI_ERR_AMODE, "a file that is opened to read cannot be created"};
  if ((amode_ & MPI_MODE_RDWR) != 0 && (amode_ & MPI_MODE_SEQUENTIAL) != 0)
    return {MPI_ERR_AMODE, "MPI_MODE_SEQUENTIAL goes with reading or with writing"};
  return {};
}

Outcome File::open(MPI_Comm comm, MPI_Info info) {
  PIF_ASSERT(file_ == nullptr && !is_new_);
  PIF_MPI_TRY(team_.begin(comm));
  Outcome out = open_or_create(info);
  if (out.ok() && (amode_ & MPI_MODE_APPEND) != 0 && !is_new_) {
    std::uint64_t bytes = 0;
    out = team_.agree(length(&bytes));
    position_ = static_cast<std::int64_t>(bytes);
    if (team_.rank() == 0) team_.set(Team::Number::kPointer, position_);
    team_.barrier();
  }
  if (out.ok()) return out;
  if (is_new_ && team_.rank() == 0 && file_ != nullptr) (void)ask([&](auto*) { return pif_abort(file_); });
  (void)close_one(&file_);
  team_.end();
  return out;
}

Outcome File::open_committed(pif_mode mode) {
  PIF_ASSERT(file_ == nullptr, mode);
  return ask([&](pif_connection* c) {
    file_ = pif_open(c, path_.c_str(), mode);
    return answer_of(c, file_);
  });
}

// For reading each process opens it for itself. Otherwise rank 0 finds out which it is, an old file or a new one.
Outcome File::open_or_create(MPI_Info info) {
  Outcome mine = check_amode();
  First first{.amode = amode_, .is_new = 0, .token_bytes = 0};
  if (mine.ok() && may_write() && team_.rank() == 0) mine = open_first(info);
  return join_first(mine, &first);
}

// Rank 0, to write.
Outcome File::open_first(MPI_Info info) {
  const bool may_create = (amode_ & MPI_MODE_CREATE) != 0;
  is_exclusive_ = may_create && (amode_ & MPI_MODE_EXCL) != 0;
  Outcome out;
  pif_stat_info known{};
  if (is_exclusive_) {
    out = ask([&](pif_connection* c) { return pif_stat(c, path_.c_str(), &known); });
    if (out.ok()) return {MPI_ERR_FILE_EXISTS, path_ + " exists"};
  } else {
    out = open_committed(PIF_WRITE);
  }
  if (out.error_class != MPI_ERR_NO_SUCH_FILE || !may_create) return out;
  is_new_ = true;
  return create(creation_from(info));
}

File::Creation File::creation_from(MPI_Info info) const {
  Creation out;
  out.options.exclusive = is_exclusive_ ? 1 : 0;
  out.options.record_length = number_in(hint(info, "striping_unit"));
  out.options.width = number_in(hint(info, "striping_factor"));
  out.options.bevy = number_in(hint(info, "pif_bevy"));
  out.nodes = numbers_in(hint(info, "pif_nodes"));
  if (!out.nodes.empty()) out.options.width = 0;
  return out;
}

Outcome File::create(const Creation& creation) {
  PIF_ASSERT(file_ == nullptr && team_.rank() == 0, team_.rank());
  PIF_ASSERT(creation.names.size() == creation.attributes.size(), creation.names.size(), creation.attributes.size());
  pif_create_options options = creation.options;
  options.nodes = creation.nodes.empty() ? nullptr : creation.nodes.data();
  options.node_count = creation.nodes.size();
  options.attributes = creation.attributes.empty() ? nullptr : creation.attributes.data();
  options.attribute_count = creation.attributes.size();
  return ask([&](pif_connection* c) {
    file_ = pif_create(c, path_.c_str(), &options);
    return answer_of(c, file_);
  });
}

// Rank 0 sends all others one message of the file that it has opened or created. They open it, too; then all agree.
Outcome File::join_first(const Outcome& done, First* first) {
  Outcome mine = done;
  const bool is_first = team_.rank() == 0;
  if (is_first && mine.ok() && is_new_) {
    std::int64_t bytes = 0;
    mine = ask([&](auto*) { return pif_share(file_, first->token.data(), first->token.size()); }, &bytes);
    if (mine.ok()) PIF_ASSERT(bytes > 0 && static_cast<std::size_t>(bytes) <= first->token.size(), bytes);
    first->token_bytes = static_cast<std::uint32_t>(bytes);
  }
  first->is_new = is_new_ ? 1 : 0;
  first->is_done = mine.ok() ? 1 : 0;
  team_.broadcast(std::as_writable_bytes(std::span(first, 1)));
  if (mine.ok() && first->amode != amode_) mine = {MPI_ERR_NOT_SAME, "the processes gave different modes"};
  is_new_ = first->is_new != 0;
  const bool nobody_else = (amode_ & MPI_MODE_UNIQUE_OPEN) != 0;
  if (mine.ok() && first->is_done != 0) {
    if (!may_write())
      mine = open_committed(nobody_else ? PIF_HOLD : PIF_READ);
    else if (!is_first)
      mine = is_new_ ? join(*first) : open_committed(PIF_WRITE);
  }
  return team_.agree(mine);
}

Outcome File::join(const First& first) {
  PIF_ASSERT(file_ == nullptr && first.is_new != 0 && team_.rank() > 0, team_.rank());
  const std::size_t bytes = std::min<std::size_t>(first.token.size(), first.token_bytes);
  return ask([&](pif_connection* c) {
    file_ = pif_join(c, first.token.data(), bytes);
    return answer_of(c, file_);
  });
}

// ---- closing ----

Outcome File::close_one(pif_file** file) {
  if (*file == nullptr) return {};
  Outcome out = ask([&](auto*) { return pif_close(*file); });
  *file = nullptr;
  return out;
}

// All have written what they want before rank 0 commits it, and all learn how that ended. A program may pass over the
// error of a write: the file must not be there then.
Outcome File::finish_new() {
  PIF_ASSERT(is_new_ && file_ != nullptr);
  Outcome out = team_.agree(lost_.ok() ? ask([&](auto*) { return pif_done(file_); }) : lost_);
  if (team_.rank() == 0) {
    if (out.ok()) out = ask([&](auto*) { return pif_commit(file_); });
    if (!out.ok()) (void)ask([&](auto*) { return pif_abort(file_); });
  }
  return team_.agree(out);
}

Outcome File::close() {
  PIF_ASSERT(file_ != nullptr);
  const bool deletes = (amode_ & MPI_MODE_DELETE_ON_CLOSE) != 0;
  Outcome out;
  if (is_new_ && !deletes) out = finish_new();
  if (deletes) team_.barrier();  // all have done what they do with it
  if (is_new_ && deletes && team_.rank() == 0) out = ask([&](auto*) { return pif_abort(file_); });
  const Outcome closed = close_one(&file_);
  if (out.ok() && !is_new_) out = closed;
  if (deletes && !is_new_) {
    team_.barrier();
    if (team_.rank() == 0) out = ask([&](pif_connection* c) { return pif_remove(c, path_.c_str(), 0); });
  }
  out = team_.agree(out);
  report();
  team_.end();
  return out;
}

// A line to standard error, if rank 0 was told to.
void File::report() {
  std::int64_t is_wanted = reports() ? 1 : 0;
  team_.broadcast(&is_wanted);
  if (is_wanted == 0) return;
  const std::array<std::uint64_t, 5> mine{counts_.reads, counts_.bytes_read, counts_.writes, counts_.bytes_written,
                                          counts_.microseconds};
  std::array<std::int64_t, 5> all{};
  std::int64_t below = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) team_.sums(static_cast<std::int64_t>(mine[i]), &below, &all[i]);
  if (team_.rank() != 0) return;
  std::fprintf(stderr, "pif: %s: %d processes: %lld reads of %lld bytes, %lld writes of %lld bytes, %.3f s in them\n",
               path_.c_str(), team_.size(), static_cast<long long>(all[0]), static_cast<long long>(all[1]),
               static_cast<long long>(all[2]), static_cast<long long>(all[3]), static_cast<double>(all[4]) / 1e6);
}

Outcome File::sync() {
  if (!may_write()) return team_.agree({MPI_ERR_READ_ONLY, "the file is open for reading"});
  // Bytes that are written to a committed file are durable already.
  return team_.agree(is_new_ ? ask([&](auto*) { return pif_sync(file_); }) : Outcome{});
}

// ---- lengths ----

Outcome File::length(std::uint64_t* bytes) {
  if (is_new_)
    *bytes = static_cast<std::uint64_t>(team_.read(Team::Number::kLength));
  else
    PIF_MPI_TRY(ask([&](auto*) { return pif_file_length(file_, nullptr, bytes); }));
  length_seen_ = *bytes;
  return {};
}

// All get the length that rank 0 sees, unless one of them has failed already.
Outcome File::common_length(const Outcome& mine, std::uint64_t* bytes) {
  Outcome out = mine;
  if (out.ok() && team_.rank() == 0) out = length(bytes);
  PIF_MPI_TRY(team_.agree(out));
  team_.broadcast(std::as_writable_bytes(std::span(bytes, 1)));
  return {};
}

// A new file is cut by each member, which knows what it has written; the rest is done by one of them.
Outcome File::resize(std::uint64_t now, std::uint64_t bytes) {
  PIF_ASSERT(may_write() && (bytes > now || is_new_), now, bytes);
  Outcome mine;
  if (bytes < now || team_.rank() == 0) mine = ask([&](auto*) { return pif_resize(file_, bytes); });
  PIF_MPI_TRY(team_.agree(mine));
  return set_length(bytes);
}

// Collective: no member sees an older length afterwards.
Outcome File::set_length(std::uint64_t bytes) {
  length_seen_ = bytes;
  if (is_new_ && team_.rank() == 0) team_.set(Team::Number::kLength, static_cast<std::int64_t>(bytes));
  team_.barrier();
  return {};
}

Outcome File::creation_like(pif_file* file, Creation* out) const {
  out->options.record_length = pif_record_length(file);
  if (out->options.record_length == 0)
    return {MPI_ERR_UNSUPPORTED_OPERATION, path_ + " has records of any length: it cannot be made shorter"};
  out->options.exclusive = is_new_ && is_exclusive_ ? 1 : 0;
  pif_stat_info info{};
  if (!is_new_) {
    PIF_MPI_TRY(ask([&](pif_connection* c) { return pif_stat(c, path_.c_str(), &info); }));
    out->options.mode = info.mode & 07777;
  }
  std::int64_t count = 0;
  PIF_MPI_TRY(ask([&](auto*) { return pif_nodes(file, nullptr, 0); }, &count));
  out->nodes.resize(static_cast<std::size_t>(count));
  PIF_MPI_TRY(ask([&](auto*) { return pif_nodes(file, out->nodes.data(), out->nodes.size()); }));
  std::uint32_t bevy = 0;
  PIF_MPI_TRY(ask([&](auto*) { return pif_bevies(file, &bevy, 1); }, &count));
  out->options.bevy = count == 0 ? PIF_NO_BEVIES : bevy;
  const pif_attribute_function keep = [](void* user, const char* name, const char* value) {
    auto* const creation = static_cast<Creation*>(user);
    creation->names.emplace_back(name);
    creation->values.emplace_back(value);
    return 0;
  };
  PIF_MPI_TRY(ask([&](auto*) { return pif_attributes(file, keep, out); }));
  for (std::size_t i = 0; i < out->names.size(); ++i)
    out->attributes.push_back({out->names[i].c_str(), out->values[i].c_str()});
  return {};
}

// Every process copies its blocks, in turn with the others.
Outcome File::copy_part(pif_file* from, std::uint64_t bytes) {
  PIF_ASSERT(from != nullptr && file_ != nullptr && from != file_, bytes);
  std::vector<char> block(std::min<std::uint64_t>(bytes, kCopyBytes));
  const std::uint64_t step = kCopyBytes * static_cast<std::uint64_t>(team_.size());
  for (std::uint64_t at = kCopyBytes * static_cast<std::uint64_t>(team_.rank()); at < bytes; at += step) {
    const std::size_t size = std::min<std::uint64_t>(kCopyBytes, bytes - at);
    std::fill(block.begin(), block.end(), '\0');
    PIF_MPI_TRY(ask([&](auto*) { return pif_pread(from, block.data(), size, at); }));
    PIF_MPI_TRY(ask([&](auto*) { return pif_pwrite(file_, block.data(), size, at); }));
  }
  return {};
}

// A new file with the first `bytes` bytes takes the place of this one: at once for these processes, at the close for
// all others.
Outcome File::begin_anew(std::uint64_t bytes) {
  PIF_ASSERT(file_ != nullptr && may_write(), bytes);
  pif_file* old = std::exchange(file_, nullptr);
  Outcome mine;
  if (team_.rank() == 0) {
    Creation like;
    mine = creation_like(old, &like);
    if (mine.ok()) mine = create(like);
  }
  const bool was_new = std::exchange(is_new_, true);
  First first{.amode = amode_, .is_new = 1, .token_bytes = 0};
  mine = join_first(mine, &first);
  if (mine.ok()) mine = team_.agree(copy_part(old, bytes));
  if (!mine.ok()) {
    if (team_.rank() == 0 && file_ != nullptr) (void)ask([&](auto*) { return pif_abort(file_); });
    (void)close_one(&file_);
    file_ = old;
    is_new_ = was_new;
    return mine;
  }
  if (was_new && team_.rank() == 0) (void)ask([&](auto*) { return pif_abort(old); });
  (void)close_one(&old);
  return set_length(bytes);
}

Outcome File::set_size(MPI_Offset bytes) {
  Outcome mine;
  if (!may_write())
    mine = {MPI_ERR_READ_ONLY, "the file is open for reading"};
  else if (bytes < 0)
    mine = {MPI_ERR_ARG, "a file cannot be shorter than 0 bytes"};
  PIF_MPI_TRY(team_.agree(mine));  // and what others wrote before is counted
  std::uint64_t now = 0;
  PIF_MPI_TRY(common_length({}, &now));
  const auto wanted = static_cast<std::uint64_t>(bytes);
  if (wanted == now) return set_length(now);
  // To cut a new file zeros are written, to begin anew what stays.
  const bool is_cut = wanted < now && !(is_new_ && now - wanted <= wanted);
  return is_cut ? begin_anew(wanted) : resize(now, wanted);
}

Outcome File::preallocate(MPI_Offset bytes) {
  Outcome mine;
  if (!may_write())
    mine = {MPI_ERR_READ_ONLY, "the file is open for reading"};
  else if (bytes < 0)
    mine = {MPI_ERR_ARG, "there is no room of less than 0 bytes"};
  PIF_MPI_TRY(team_.agree(mine));
  if (team_.rank() == 0 && is_new_ && bytes > 0)
    mine = ask([&](auto*) { return pif_preallocate(file_, static_cast<std::uint64_t>(bytes)); });
  std::uint64_t now = 0;
  PIF_MPI_TRY(common_length(mine, &now));
  const auto wanted = static_cast<std::uint64_t>(bytes);
  return wanted > now ? resize(now, wanted) : Outcome{};
}

Outcome File::info(MPI_Info* out) {
  std::int64_t count = 0;
  PIF_MPI_TRY(ask([&](auto*) { return pif_nodes(file_, nullptr, 0); }, &count));
  std::vector<std::uint32_t> nodes(static_cast<std::size_t>(count));
  PIF_MPI_TRY(ask([&](auto*) { return pif_nodes(file_, nodes.data(), nodes.size()); }));
  std::string names;
  for (const std::uint32_t node : nodes) names += (names.empty() ? "" : ",") + std::to_string(node);
  if (PMPI_Info_create(out) != MPI_SUCCESS) return {MPI_ERR_NO_MEM, "no MPI_Info can be made"};
  PMPI_Info_set(*out, "striping_factor", std::to_string(count).c_str());
  PMPI_Info_set(*out, "striping_unit", std::to_string(pif_record_length(file_)).c_str());
  if (names.size() < MPI_MAX_INFO_VAL) PMPI_Info_set(*out, "pif_nodes", names.c_str());
  return {};
}

}  // namespace pif::mpi
