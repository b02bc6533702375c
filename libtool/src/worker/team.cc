#include "pif/tool/team.h"

#include <algorithm>
#include <climits>
#include <iterator>
#include <span>

#include <fmt/format.h>

#include "pif/base/assert.h"
#include "pif/base/packed.h"
#include "pif/tool/message.h"
#include "worker/mail.h"
#include "worker/worker_impl.h"

namespace pif::tool {
namespace {

constexpr int kWordsPerTurn = 64;                         // that receive_some() takes
constexpr std::size_t kPartBytes = std::size_t{4} << 20;  // of a value, in one letter

tl::unexpected<Error> unexpected_letter(const Letter& letter) {
  return fail(Code::kInternal, fmt::format("worker {} is at another step than this one", letter.from));
}

}  // namespace

Result<Team> Team::join(Worker& worker, Duration patience) {
  PIF_TRY_VALUE(Mail* const mail, Mail::of(worker));
  return Team(worker, *mail, patience);
}

Result<Letter> Team::next() {
  PIF_TRY_VALUE(auto letter, mail_->receive(worker_->clock().now() + patience_));
  if (!letter) return fail(Code::kTimeout, "the other workers have not sent what this one waits for");
  return std::move(*letter);
}

Result<Letter> Team::next_from(std::uint32_t rank) {
  PIF_ASSERT(rank < worker_->width() && rank != worker_->rank(), rank, worker_->width());
  PIF_TRY_VALUE(Letter letter, next());
  if (letter.from != rank) return unexpected_letter(letter);
  return letter;
}

// A header holds 1 MiB at most, and what many workers say of many runs is more.
Status Team::send_value(std::uint32_t rank, const std::string& value) {
  const auto bytes = std::as_bytes(std::span(value));
  std::size_t at = 0;
  do {
    job::Mail here;
    here.mutable_here()->set_size(value.size());
    const auto part = bytes.subspan(at, std::min(kPartBytes, bytes.size() - at));
    PIF_TRY(mail_->send(rank, here, net::Buffer::copy_of(part)));
    at += part.size();
  } while (at < bytes.size());
  return {};
}

Result<bool> Team::take_part(const Letter& letter, std::string& value) {
  if (!letter.mail.has_here()) return unexpected_letter(letter);
  const std::uint64_t size = letter.mail.here().size();
  if (value.size() > size || letter.body.size() > size - value.size())
    return sent_nonsense(letter.from, fmt::format("more than the {} bytes that its value has", size));
  value.append(reinterpret_cast<const char*>(letter.body.data()), letter.body.size());
  return value.size() == size;
}

// The worker of rank 0 collects what all say, and tells all.
Result<std::vector<std::string>> Team::collect(std::string value) {
  PIF_ASSERT(worker_->rank() == 0, worker_->rank());
  std::vector<std::string> values(worker_->width());
  std::vector<bool> is_whole(worker_->width());
  values[0] = std::move(value);
  is_whole[0] = true;
  for (std::uint32_t missing = worker_->width() - 1; missing > 0;) {
    PIF_TRY_VALUE(const Letter letter, next());
    PIF_ASSERT(letter.from < values.size(), letter.from, values.size());  // of strangers there are no letters
    if (is_whole[letter.from]) return sent_nonsense(letter.from, "two values for one step");
    PIF_TRY_VALUE(is_whole[letter.from], take_part(letter, values[letter.from]));
    if (is_whole[letter.from]) --missing;
  }
  job::All message;
  for (const std::string& each : values) message.add_values(each);
  if (message.ByteSizeLong() > INT_MAX)
    return fail(Code::kTooLarge, fmt::format("all workers together gave {} bytes; at most {} are possible",
                                             message.ByteSizeLong(), INT_MAX));
  const std::string all = message.SerializeAsString();
  for (std::uint32_t rank = 1; rank < worker_->width(); ++rank) PIF_TRY(send_value(rank, all));
  return values;
}

Result<std::vector<std::string>> Team::all_gather(std::string value) {
  mail_->next_step();
  if (worker_->rank() == 0) return collect(std::move(value));
  PIF_TRY(send_value(0, value));
  std::string all;
  for (bool is_whole = false; !is_whole;) {
    PIF_TRY_VALUE(const Letter letter, next_from(0));
    PIF_TRY_VALUE(is_whole, take_part(letter, all));
  }
  PIF_TRY_VALUE(job::All message, parse_message<job::All>(all, 0));
  if (static_cast<std::uint32_t>(message.values_size()) != worker_->width())
    return sent_nonsense(0, fmt::format("{} values of {} workers", message.values_size(), worker_->width()));
  auto& values = *message.mutable_values();
  return std::vector<std::string>(std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
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

Result<std::vector<Team::Handles>> Team::pass_to_all(const std::function<Result<Handles>()>& make) {
  PIF_TRY(barrier());  // now everybody listens
  mail_->next_step();
  job::Mail pass;
  pass.mutable_pass();
  std::vector<Handles> got(worker_->width());
  std::vector<bool> has_come(worker_->width());
  for (std::uint32_t rank = 0; rank < worker_->width(); ++rank) {
    if (rank == worker_->rank()) continue;
    PIF_TRY_VALUE(Handles handles, make());
    PIF_TRY(mail_->pass(rank, pass, std::move(handles)));
  }
  for (std::uint32_t missing = worker_->width() - 1; missing > 0; --missing) {
    PIF_TRY_VALUE(Letter letter, next());
    PIF_ASSERT(letter.from < got.size(), letter.from, got.size());
    if (!letter.mail.has_pass() || has_come[letter.from]) return unexpected_letter(letter);
    has_come[letter.from] = true;
    got[letter.from] = std::move(letter.handles);
  }
  return got;
}

template <typename T, typename Adopt>
Result<std::vector<T>> Team::share_any(const T& own, std::uint64_t bytes, const Adopt& adopt) {
  PIF_TRY_VALUE(const auto sizes, all_gather_numbers({bytes}));
  PIF_TRY_VALUE(auto handles, pass_to_all([&]() -> Result<Handles> {
                  Handles one;
                  if (own.empty()) return one;
                  PIF_TRY_VALUE(one.emplace_back(), own.share());
                  return one;
                }));
  if (!own.empty()) {
    PIF_TRY_VALUE(handles[worker_->rank()].emplace_back(), own.share());
  }
  PIF_ASSERT(handles.size() == worker_->width() && sizes.size() == handles.size(), handles.size(), sizes.size());
  std::vector<T> all(worker_->width());
  for (std::uint32_t rank = 0; rank < worker_->width(); ++rank) {
    if (handles[rank].empty() && sizes[rank][0] == 0) continue;
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
  return share_any(own, own.bytes().size(), SharedMemory::adopt);
}

Result<std::vector<Scratch>> Team::share(const Scratch& own) {
  return share_any(own, own.size(),
                   [](Handle handle, std::uint64_t size) { return Scratch::adopt(std::move(handle), size); });
}

Result<std::vector<Scratch>> Team::share_writable(const Scratch& own) {
  return share_any(own, own.size(),
                   [](Handle handle, std::uint64_t size) { return Scratch::adopt(std::move(handle), size, true); });
}

Result<std::vector<component::Files>> Team::share_output(Output& output) {
  const auto make = [&]() -> Result<Handles> {
    if (!output.is_made()) return Handles();
    return component::share(output.files());
  };
  PIF_TRY_VALUE(auto handles, pass_to_all(make));
  PIF_TRY_VALUE(handles[worker_->rank()], make());
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
  const auto make = [&]() -> Result<Handles> {
    if (!input.is_here() || input.rows() == 0) return Handles();
    return component::share(input.files());
  };
  PIF_TRY_VALUE(auto handles, pass_to_all(make));
  PIF_TRY_VALUE(handles[worker_->rank()], make());
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

void Team::begin_talk() {
  mail_->next_step();
  own_.clear();
}

Status Team::send(std::uint32_t rank, std::string head, net::Buffer body) {
  PIF_ASSERT(rank < worker_->width(), rank, worker_->width());
  if (rank == worker_->rank()) {
    own_.push_back({rank, std::move(head), std::move(body)});
    return {};
  }
  job::Mail mail;
  mail.mutable_word()->set_head(std::move(head));
  return mail_->send(rank, mail, std::move(body));
}

Result<std::optional<Message>> Team::receive(Time deadline) {
  if (!own_.empty()) {
    Message word = std::move(own_.front());
    own_.pop_front();
    return word;
  }
  PIF_TRY_VALUE(auto letter, mail_->receive(deadline));
  if (!letter) return std::nullopt;
  if (!letter->mail.has_word()) return unexpected_letter(*letter);
  return Message{letter->from, std::move(*letter->mail.mutable_word()->mutable_head()), std::move(letter->body)};
}

Status Team::receive_some(Duration patience, const std::function<Status(Message)>& take) {
  const bool may_wait = patience > Duration::zero();
  Time until = may_wait ? clock().now() + patience : Time{};
  for (int i = 0; i < kWordsPerTurn; ++i) {
    PIF_TRY_VALUE(auto word, receive(until));
    if (!word && may_wait && i == 0) {
      return fail(Code::kTimeout, fmt::format("no other worker has said anything for {} s",
                                              std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
    }
    if (!word) return {};
    PIF_TRY(take(std::move(*word)));
    until = Time{};
  }
  return {};
}

Status Team::in_turn(const std::function<Status(std::string& state)>& f) {
  mail_->next_step();
  std::string state;
  if (worker_->rank() > 0) {
    PIF_TRY_VALUE(Letter letter, next_from(worker_->rank() - 1));
    if (!letter.mail.has_here()) return unexpected_letter(letter);
    state = std::move(*letter.mail.mutable_here()->mutable_value());
  }
  PIF_TRY(f(state));
  if (worker_->rank() + 1 == worker_->width()) return {};
  job::Mail here;
  here.mutable_here()->set_value(std::move(state));
  return mail_->send(worker_->rank() + 1, here);
}

}  // namespace pif::tool
