#include "pif/tool/team.h"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <climits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "messages/values.h"
#include "pif/base/assert.h"
#include "pif/base/packed.h"
#include "pif/tool/message.h"
#include "worker/debugger.h"
#include "worker/mail.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

constexpr std::size_t kPassedAtOnce = 8;  // descriptors in one letter, as a packet takes, and of one worker in a step

tl::unexpected<Error> unexpected_letter(const Letter& letter) {
  return fail(Code::kInternal, fmt::format("worker {} is at another step than this one", letter.from));
}

// One more right to the same file.
Result<Handle> another(const Handle& handle) {
  Handle copy;
  copy.object = handle.object;
  if (!handle.fd) return copy;
  copy.fd = UniqueFd(fcntl(handle.fd.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.fd) return fail_errno(errno, "cannot share a file with other workers");
  return copy;
}

}  // namespace

Result<Team> Team::join(Worker& worker, Duration patience) {
  PIF_TRY_VALUE(Mail* const mail, Mail::of(worker));
  if (worker.impl_->description.has_debugged()) patience = kDebuggerPatience;
  return Team(worker, *mail, patience);
}

// Up the tree comes what all below gave; down it goes what all gave.
Result<std::vector<std::string>> Team::all_gather(std::string value) {
  const std::uint32_t rank = worker_->rank(), width = worker_->width();
  const Tree tree(rank, width);
  ValueStep step(*this, patience_, tree.neighbours());
  std::string list;
  append_value(list, rank, value);
  for (const std::uint32_t child : tree.children()) {
    PIF_TRY_VALUE(const std::string below, step.receive(child));
    if (const auto read = unpack_values(below, Tree(child, width), width); !read)
      return sent_wrong(child, read.error());
    list += below;
    if (list.size() > INT_MAX)
      return fail(Code::kTooLarge, fmt::format("all workers together gave {} bytes and more; at most {} are possible",
                                               list.size(), INT_MAX));
  }
  if (tree.parent()) {
    PIF_TRY(step.send(*tree.parent(), list));
    PIF_TRY_VALUE(list, step.receive(*tree.parent()));
  }
  for (const std::uint32_t child : tree.children()) PIF_TRY(step.send(child, list));
  PIF_TRY(step.finish());
  auto all = unpack_values(list, Tree(0, width), width);
  return all || !tree.parent() ? std::move(all) : sent_wrong(*tree.parent(), all.error());
}

Result<std::vector<std::string>> Team::all_to_all(const std::vector<std::string_view>& values) {
  const std::uint32_t rank = worker_->rank(), width = worker_->width();
  if (values.size() != width)
    return fail(Code::kInvalid, fmt::format("{} values for {} workers", values.size(), width));
  std::vector<std::uint32_t> ranks(width);
  std::iota(ranks.begin(), ranks.end(), 0);
  ValueStep step(*this, patience_, ranks);
  for (std::uint32_t i = 0; i < width; ++i) {
    const std::uint32_t to = rank + i < width ? rank + i : rank + i - width;  // not all to the same one at once
    PIF_TRY(step.send(to, values[to]));
  }
  std::vector<std::string> come(width);
  for (const std::uint32_t from : ranks) {
    PIF_TRY_VALUE(come[from], step.receive(from));
  }
  PIF_TRY(step.finish());
  return come;
}

Result<std::vector<std::string>> Team::gather(std::string value, std::uint32_t to) {
  const std::uint32_t rank = worker_->rank(), width = worker_->width();
  if (to >= width) return fail(Code::kInvalid, fmt::format("there is no worker {}", to));
  std::vector<std::uint32_t> senders(rank == to ? width : 0);
  std::iota(senders.begin(), senders.end(), 0);
  ValueStep step(*this, patience_, senders);
  PIF_TRY(step.send(to, value));
  std::vector<std::string> values;
  for (const std::uint32_t from : senders) {
    PIF_TRY_VALUE(values.emplace_back(), step.receive(from));
  }
  PIF_TRY(step.finish());
  return values;
}

Result<std::string> Team::all_reduce(std::string value,
                                     const std::function<Status(std::string& to, std::string_view value)>& f) {
  const Tree tree(worker_->rank(), worker_->width());
  ValueStep step(*this, patience_, tree.neighbours());
  for (const std::uint32_t child : tree.children()) {
    PIF_TRY_VALUE(const std::string below, step.receive(child));
    if (const Status added = f(value, below); !added) return sent_wrong(child, added.error());
  }
  if (tree.parent()) {
    PIF_TRY(step.send(*tree.parent(), value));
    PIF_TRY_VALUE(value, step.receive(*tree.parent()));
  }
  for (const std::uint32_t child : tree.children()) PIF_TRY(step.send(child, value));
  PIF_TRY(step.finish());
  return value;
}

Status Team::barrier() {
  PIF_TRY(all_gather({}));
  return {};
}

Result<std::string> Team::broadcast(std::string value, std::uint32_t from) {
  PIF_TRY_VALUE(auto all, all_gather(worker_->rank() == from ? std::move(value) : std::string()));
  if (from >= all.size()) return fail(Code::kInvalid, fmt::format("there is no worker {}", from));
  return std::move(all[from]);
}

Result<std::vector<std::vector<std::uint64_t>>> Team::all_gather_numbers(const std::vector<std::uint64_t>& values) {
  PIF_TRY_VALUE(const auto all, all_gather(packed(std::span<const std::uint64_t>(values))));
  std::vector<std::vector<std::uint64_t>> numbers(all.size());
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    const auto got = PackedNumbers<std::uint64_t>::all_of(std::as_bytes(std::span(all[rank])), values.size());
    if (!got)
      return sent_nonsense(rank, fmt::format("{} bytes, where {} numbers are", all[rank].size(), values.size()));
    for (std::size_t i = 0; i < got->size(); ++i) numbers[rank].push_back((*got)[i]);
  }
  return numbers;
}

Result<std::vector<std::uint64_t>> Team::sum(const std::vector<std::uint64_t>& values) {
  PIF_TRY_VALUE(const auto all, all_gather_numbers(values));
  std::vector<std::uint64_t> sums(values.size());
  for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      if (__builtin_add_overflow(sums[i], all[rank][i], &sums[i]))
        return sent_nonsense(rank, fmt::format("{}, of which the sum has no 64 bits", all[rank][i]));
    }
  }
  return sums;
}

// ---- descriptors ----------------------------------------------------------------------------------------------------

// Those of these workers, a few at a time.
Status Team::pass(std::uint32_t to, std::span<const std::uint32_t> owners, const std::vector<Handles>& all) {
  job::Mail letter;
  Handles handles;
  for (const std::uint32_t owner : owners) {
    PIF_ASSERT(owner < all.size(), owner, all.size());
    for (const Handle& handle : all[owner]) {
      if (handles.size() == kPassedAtOnce) {
        PIF_TRY(mail_->pass(to, letter, std::exchange(handles, {})));
        letter.mutable_pass()->clear_owners();
      }
      letter.mutable_pass()->add_owners(owner);
      PIF_TRY_VALUE(handles.emplace_back(), another(handle));
    }
  }
  PIF_ASSERT(letter.pass().owners_size() == static_cast<int>(handles.size()), handles.size());
  letter.mutable_pass()->set_is_last(true);
  return mail_->pass(to, letter, std::move(handles));
}

// Until all of them have passed what they have.
Status Team::take_passed(std::span<const std::uint32_t> from, bool may_bring_others, std::vector<Handles>& all) {
  std::vector<bool> is_over(worker_->width(), true);
  for (const std::uint32_t rank : from) is_over[rank] = false;
  PIF_ASSERT(all.size() == is_over.size(), all.size(), is_over.size());
  for (std::size_t missing = from.size(); missing > 0;) {
    PIF_TRY_VALUE(auto letter, mail_->receive(clock().now() + patience_));
    if (!letter) return fail(Code::kTimeout, "the other workers have not passed what this one waits for");
    PIF_ASSERT(letter->from < is_over.size(), letter->from);  // Mail drops strangers' letters
    if (!letter->mail.has_pass() || is_over[letter->from]) return unexpected_letter(*letter);
    const job::Pass& pass = letter->mail.pass();
    if (letter->handles.size() != static_cast<std::size_t>(pass.owners_size()))
      return sent_nonsense(letter->from, fmt::format("{} descriptors, of which it names {}", letter->handles.size(),
                                                     pass.owners_size()));
    for (std::size_t i = 0; i < letter->handles.size(); ++i) {
      const std::uint32_t owner = pass.owners(static_cast<int>(i));
      const bool is_its = owner == letter->from || (may_bring_others && owner < all.size());
      if (!is_its || all[owner].size() == kPassedAtOnce)
        return sent_nonsense(letter->from, fmt::format("a descriptor of worker {}", owner));
      all[owner].push_back(std::move(letter->handles[i]));
    }
    is_over[letter->from] = pass.is_last();
    if (pass.is_last()) --missing;
  }
  return {};
}

// All give them to the lowest rank of the machine, which gives everybody everything: so there are two letters for each
// worker, and not one from each to each.
Result<std::vector<Team::Handles>> Team::pass_to_all(Handles own, bool only_near) {
  const std::uint32_t rank = worker_->rank();
  std::vector<std::uint32_t> near;  // this one, too
  for (std::uint32_t other = 0; other < worker_->width(); ++other) {
    if (other == rank || are_near(worker_->impl_->description, rank, other))
      near.push_back(other);
    else if (!only_near)
      return fail(Code::kUnavailable,
                  fmt::format("worker {} is on another machine, where nothing can be shared", other));
  }
  PIF_TRY(barrier());  // now everybody listens
  mail_->next_step();
  std::vector<Handles> all(worker_->width());
  const std::uint32_t first = near.front();
  if (rank != first) {
    all[rank] = std::move(own);
    PIF_TRY(pass(first, std::array{rank}, all));
    all[rank].clear();  // it comes back
    PIF_TRY(take_passed(std::array{first}, true, all));
    return all;
  }
  PIF_TRY(take_passed(std::span(near).subspan(1), false, all));
  all[rank] = std::move(own);
  for (const std::uint32_t other : std::span(near).subspan(1)) PIF_TRY(pass(other, near, all));
  return all;
}

template <typename T, typename Adopt>
Result<std::vector<T>> Team::share_any(const T& own, std::uint64_t bytes, bool only_near, const Adopt& adopt) {
  PIF_TRY_VALUE(const auto sizes, all_gather_numbers({bytes}));
  Handles one;
  if (!own.empty()) {
    PIF_TRY_VALUE(one.emplace_back(), own.share());
  }
  PIF_TRY_VALUE(auto handles, pass_to_all(std::move(one), only_near));
  PIF_ASSERT(handles.size() == worker_->width() && sizes.size() == handles.size(), handles.size(), sizes.size());
  std::vector<T> all(worker_->width());
  for (std::uint32_t rank = 0; rank < worker_->width(); ++rank) {
    const bool is_near = rank == worker_->rank() || are_near(worker_->impl_->description, worker_->rank(), rank);
    if (!is_near || (handles[rank].empty() && sizes[rank][0] == 0)) continue;
    if (handles[rank].size() != 1)
      return sent_nonsense(rank,
                           fmt::format("{} descriptors of {} bytes to share", handles[rank].size(), sizes[rank][0]));
    auto adopted = adopt(std::move(handles[rank][0]), sizes[rank][0]);
    if (!adopted) return sent_nonsense(rank, adopted.error().text);
    all[rank] = std::move(*adopted);
  }
  return all;
}

Result<std::vector<SharedMemory>> Team::share(const SharedMemory& own) {
  return share_any(own, own.bytes().size(), false, SharedMemory::adopt);
}

Result<std::vector<SharedMemory>> Team::share_near(const SharedMemory& own) {
  return share_any(own, own.bytes().size(), true, SharedMemory::adopt);
}

Result<std::vector<Scratch>> Team::share(const Scratch& own) {
  return share_any(own, own.size(), false,
                   [](Handle handle, std::uint64_t size) { return Scratch::adopt(std::move(handle), size); });
}

Result<std::vector<Scratch>> Team::share_writable(const Scratch& own) {
  return share_any(own, own.size(), false,
                   [](Handle handle, std::uint64_t size) { return Scratch::adopt(std::move(handle), size, true); });
}

Result<std::vector<component::Files>> Team::share_output(Output& output) {
  Handles own;
  if (output.is_made()) {
    PIF_TRY_VALUE(own, component::share(output.files()));
  }
  PIF_TRY_VALUE(auto handles, pass_to_all(std::move(own), false));
  PIF_TRY_VALUE(const auto ranks, worker_->ranks_on(output));
  PIF_ASSERT(ranks.size() == output.layout().width(), ranks.size(), output.layout().width());
  std::vector<component::Files> files(output.layout().width());
  for (LfsIndex lfs = 0; lfs < files.size(); ++lfs) {
    if (!output.has_component(lfs)) continue;
    auto adopted = component::adopt(worker_->impl_->world.storage, output.format(), std::move(handles[ranks[lfs]]));
    if (!adopted) return sent_wrong(ranks[lfs], adopted.error());
    files[lfs] = std::move(*adopted);
  }
  return files;
}

Result<std::vector<std::unique_ptr<Input>>> Team::share_input(Input& input) {
  const component::Tail& own = input.tail();
  PIF_TRY_VALUE(const auto tails, all_gather_numbers({own.rows, own.bytes, own.data_sum, own.index_sum}));
  Handles files_here;
  if (input.is_here() && input.rows() > 0) {
    PIF_TRY_VALUE(files_here, component::share(input.files()));
  }
  PIF_TRY_VALUE(auto handles, pass_to_all(std::move(files_here), false));
  PIF_TRY_VALUE(const auto ranks, worker_->ranks_on(input));
  PIF_ASSERT(ranks.size() == input.layout().width(), ranks.size(), input.layout().width());
  std::vector<std::unique_ptr<Input>> all(ranks.size());
  for (LfsIndex lfs = 0; lfs < all.size(); ++lfs) {
    const std::uint32_t rank = ranks[lfs];
    if (input.layout().rows(lfs, input.file_length().records) == 0) continue;
    std::unique_ptr<Input> made(new Input(worker_->impl_->world.storage, input.file(), lfs));
    auto files = component::adopt(worker_->impl_->world.storage, input.format(), std::move(handles[rank]));
    if (!files) return sent_wrong(rank, files.error());
    made->access_->adopt(std::move(*files), {tails[rank][0], tails[rank][1], tails[rank][2], tails[rank][3]});
    PIF_TRY(made->open());
    all[lfs] = std::move(made);
  }
  return all;
}

Status Team::in_turn(const std::function<Status(std::string& state)>& f) {
  std::vector<std::uint32_t> before;
  if (worker_->rank() > 0) before.push_back(worker_->rank() - 1);
  ValueStep step(*this, patience_, before);
  std::string state;
  if (!before.empty()) {
    PIF_TRY_VALUE(state, step.receive(before.front()));
  }
  PIF_TRY(f(state));
  if (worker_->rank() + 1 == worker_->width()) return {};
  PIF_TRY(step.send(worker_->rank() + 1, state));
  return step.finish();
}

}  // namespace pif::tool
