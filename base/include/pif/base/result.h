// Errors as values. Every fault that a disk, a peer or a user can cause travels as an Error, in a Result<T> inside a
// program and as (code, node, text) in a message. Exceptions stay inside the translation unit that calls a throwing
// library. Thread-safety: values; share nothing.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace pif {

// The fixed list: number on the wire, name in logs and --json. Numbers are never reused. docs/PROTOCOL.md repeats it.
//      name            number  meaning
#define PIF_ERROR_CODES(X)                                                                                            \
  X(kInvalid, 1, "invalid")              /* the request itself is wrong: a name, a length, a width */                 \
  X(kNotFound, 2, "not-found")           /* no such file, folder, record or node */                                   \
  X(kExists, 3, "exists")                /* the name is taken */                                                      \
  X(kNotDirectory, 4, "not-a-directory") /* a file where a folder is needed */                                        \
  X(kIsDirectory, 5, "is-a-directory")   /* a folder where a file is needed */                                        \
  X(kNotEmpty, 6, "not-empty")           /* a folder with entries */                                                  \
  X(kPermission, 7, "permission-denied") /* the caller may not */                                                     \
  X(kBadCapability, 8, "bad-capability") /* forged, expired, of another user, file or epoch */                        \
  X(kStaleFile, 9, "stale-file")         /* deleted or replaced since it was opened */                                \
  X(kBusy, 10, "busy")                   /* held by somebody else; the text names the holder */                       \
  X(kNoSpace, 11, "no-space")            /* the LFS is at its reserve, or its disk is full */                         \
  X(kReadOnly, 12, "read-only")          /* the store may not be written */                                           \
  X(kIo, 13, "io-error")                 /* the disk failed a call */                                                 \
  X(kCorrupt, 14, "corrupt")             /* bytes that fail a check */                                                \
  X(kTimeout, 15, "timed-out")           /* no answer before the deadline */                                          \
  X(kUnavailable, 16, "unavailable")     /* a daemon is down or cannot be reached */                                  \
  X(kTooLarge, 17, "too-large")          /* over a stated limit */                                                    \
  X(kVersion, 18, "version")             /* a protocol or format version this program does not know */                \
  X(kUnsupported, 19, "unsupported")     /* known, but this store or file cannot do it */                             \
  X(kCancelled, 20, "cancelled")         /* ended because somebody asked, or another part failed */                   \
  X(kEndOfFile, 21, "end-of-file")       /* a position past the last record */                                        \
  X(kRetry, 22, "retry")                 /* lost a race; the library asks again */                                    \
  X(kInternal, 23, "internal")           /* a bug of ours, reported instead of acted on */                            \
  X(kStaleNode, 24, "stale-node")        /* an LFS that has lost changes: it serves nothing until a person decides */ \
  X(kStaleServer, 25, "stale-server")    /* the directory is older than an LFS, or not its own */                     \
  X(kStaleData, 26, "stale-data") /* rows of the file may be old or gone; ask for it all the same with --stale */     \
  X(kOldView, 27, "old-view")     /* who takes part has changed since; the library looks, and asks again */           \
  X(kOutcomeUnknown, 28, "outcome-unknown") /* asked again too late to tell whether it was done; it is not done now */

enum class Code : std::uint16_t {
  kOk = 0,
#define PIF_X(name, number, text) name = number,
  PIF_ERROR_CODES(PIF_X)
#undef PIF_X
};

// The code's name in PIF_ERROR_CODES; "unknown" for a number from a newer peer.
std::string_view code_name(Code code);
// kInternal for a number that is not in the list.
Code code_from_number(std::uint32_t number);
// The nearest code for a system call's errno.
Code code_from_errno(int error);

struct Error {
  Code code = Code::kInternal;
  std::string text;  // what went wrong, where, and what to do; no trailing full stop
  std::string node;  // which daemon said so; empty: this process

  // "lfs2: cannot write ...: no space left" as a person reads it.
  std::string to_string() const;
};

template <typename T>
using Result = tl::expected<T, Error>;
using Status = Result<void>;

// An error to return from a function with a Result or Status. code: not kOk. text and node: as in Error.
inline tl::unexpected<Error> fail(Code code, std::string text, std::string node = {}) {
  return tl::unexpected<Error>(Error{code, std::move(text), std::move(node)});
}
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
// fail() for a system call that left `error` in errno: code_from_errno(), and "WHAT: strerror(error)". For EMFILE the
// text says what to do.
tl::unexpected<Error> fail_errno(int error, std::string_view what);

}  // namespace pif

// Statement forms: hand an error to the caller, or go on with the value.
#define PIF_CONCAT_(a, b) a##b
#define PIF_CONCAT(a, b) PIF_CONCAT_(a, b)
#define PIF_TRY(expression)                                                                              \
  do {                                                                                                   \
    if (auto pif_status_ = (expression); !pif_status_) return pif::fail(std::move(pif_status_.error())); \
  } while (false)
#define PIF_TRY_VALUE(declaration, expression) PIF_TRY_VALUE_(PIF_CONCAT(pif_value_, __LINE__), declaration, expression)
#define PIF_TRY_VALUE_(temporary, declaration, expression)        \
  auto temporary = (expression);                                  \
  if (!temporary) return pif::fail(std::move(temporary.error())); \
  declaration = std::move(*temporary)
