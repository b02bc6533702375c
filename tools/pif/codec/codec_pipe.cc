#include "codec/codec_pipe.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <thread>
#include <vector>

#include "pif/base/handle.h"
#include "pif/base/write_all.h"

namespace pif::cli {
namespace {

constexpr std::size_t kStreamBytes = 256u << 10;  // read and written at once
constexpr int kCodecPipeBytes = 1 << 20;          // as much as the system gives without being asked for more

}  // namespace

struct CodecPipe::Impl {
  int local;  // the compressed side
  std::string name;
  bool is_input;  // decompresses
  std::unique_ptr<StreamCodec> codec;
  UniqueFd ours, theirs;                  // the pipe's ends; theirs is the thread's
  std::atomic<bool> is_given_up = false;  // compressing: the stream gets no end
  Status outcome;                         // of the thread, once it has ended
  std::thread thread;

  int from() const { return is_input ? local : theirs.get(); }
  int to() const { return is_input ? theirs.get() : local; }
  void start();
  Status run();
  void take_the_rest() const;
  Result<std::size_t> read(std::span<std::byte> buffer, bool& is_wanted) const;
  Status write(std::span<const std::byte> bytes, bool& is_wanted) const;
  Status transcode(std::span<const std::byte> in, bool is_last, std::vector<std::byte>& buffer, bool& is_wanted);
  void end() {
    ours.reset();
    if (thread.joinable()) thread.join();
  }
};

// Signals are for the thread that made it: it ends its work. Of a pipe that nobody reads the process dies as it would
// without this; but not of ours, whose reader has ended before.
void CodecPipe::Impl::start() {
  sigset_t blocked, before;
  sigfillset(&blocked);
  if (!is_input) sigdelset(&blocked, SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  thread = std::thread([this] {
    outcome = run();
    if (!is_input && !outcome) take_the_rest();
    theirs.reset();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Status CodecPipe::Impl::run() {
  std::vector<std::byte> in(kStreamBytes), out(kStreamBytes);
  bool is_wanted = true;
  for (bool is_last = false; !is_last && is_wanted;) {
    PIF_TRY_VALUE(const std::size_t got, read(in, is_wanted));
    is_last = got == 0;
    if (!is_wanted || (is_last && is_given_up)) break;
    PIF_TRY(transcode(std::span(in).first(got), is_last, out, is_wanted));
  }
  return {};
}

// The writer hears of the error in the end.
void CodecPipe::Impl::take_the_rest() const {
  std::vector<std::byte> buffer(kStreamBytes);
  bool is_wanted = true;
  for (bool has_more = true; has_more;) {
    const auto got = read(buffer, is_wanted);
    has_more = got && *got > 0;
  }
}

// What a terminal or a slow pipe gives is waited for only as long as somebody reads at the other end.
Result<std::size_t> CodecPipe::Impl::read(std::span<std::byte> buffer, bool& is_wanted) const {
  while (true) {
    std::array<pollfd, 2> both{{{from(), POLLIN, 0}, {is_input ? theirs.get() : -1, 0, 0}}};
    if (::poll(both.data(), both.size(), -1) < 0 && errno != EINTR) return fail_errno(errno, "cannot read " + name);
    if ((both[1].revents & POLLERR) != 0) {
      is_wanted = false;
      return 0;
    }
    if (both[0].revents == 0) continue;
    const ssize_t got = ::read(from(), buffer.data(), buffer.size());
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR && errno != EAGAIN) return fail_errno(errno, "cannot read " + name);
  }
}

Status CodecPipe::Impl::write(std::span<const std::byte> bytes, bool& is_wanted) const {
  if (bytes.empty()) return {};
  if (!is_input) return write_all(to(), bytes, "cannot write to " + name);
  while (!bytes.empty()) {
    const ssize_t went = ::write(to(), bytes.data(), bytes.size());
    if (went < 0 && errno == EPIPE) {
      is_wanted = false;
      return {};
    }
    if (went < 0 && errno != EINTR) return fail_errno(errno, "cannot write to a pipe");
    if (went > 0) bytes = bytes.subspan(static_cast<std::size_t>(went));
  }
  return {};
}

// All of `in`, and if it is the last, all that there still is.
Status CodecPipe::Impl::transcode(std::span<const std::byte> in, bool is_last, std::vector<std::byte>& buffer,
                                  bool& is_wanted) {
  for (bool is_over = false; !is_over && is_wanted && (!in.empty() || is_last);) {
    std::span<std::byte> room = buffer;
    const auto done = codec->run(in, is_last, room);
    PIF_TRY(write(std::span(buffer).first(buffer.size() - room.size()), is_wanted));
    if (!done) return fail(done.error().code, name + " " + done.error().text);
    is_over = *done;
  }
  return {};
}

namespace {

Status make_codec_pipe(UniqueFd& reading, UniqueFd& writing) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fail_errno(errno, "cannot make a pipe");
  reading = UniqueFd(ends[0]);
  writing = UniqueFd(ends[1]);
  (void)::fcntl(ends[1], F_SETPIPE_SZ, kCodecPipeBytes);  // without it it is slower
  return {};
}

}  // namespace

Result<CodecPipe> CodecPipe::decompress(int fd, Compression kind, const std::string& name) {
  std::unique_ptr<Impl> impl(new Impl{.local = fd, .name = name, .is_input = true, .codec = decoder_of(kind)});
  PIF_TRY(make_codec_pipe(impl->ours, impl->theirs));
  impl->start();
  return CodecPipe(std::move(impl));
}

Result<CodecPipe> CodecPipe::compress(int fd, Compression kind, const std::string& name) {
  std::unique_ptr<Impl> impl(new Impl{.local = fd, .name = name, .is_input = false, .codec = encoder_of(kind)});
  PIF_TRY(make_codec_pipe(impl->theirs, impl->ours));
  impl->start();
  return CodecPipe(std::move(impl));
}

CodecPipe::CodecPipe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CodecPipe::CodecPipe(CodecPipe&&) noexcept = default;
CodecPipe::~CodecPipe() {
  if (!impl_) return;
  impl_->is_given_up = true;
  impl_->end();
}

int CodecPipe::fd() const { return impl_->ours.get(); }

Status CodecPipe::finish() {
  impl_->end();
  return impl_->outcome;
}

}  // namespace pif::cli
