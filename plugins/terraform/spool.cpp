// SPDX-License-Identifier: Apache-2.0
#include "terraform/spool.hpp"

#define XXH_INLINE_ALL
#include <openssl/crypto.h>
#include <xxhash.h>
#include <zlib.h>
#include <zstd.h>

#include "driftd/sdk/types.hpp"

namespace driftd::terraform {
namespace {

constexpr std::uint64_t kMostText = 512ull << 20, kMaxStored = 192ull << 20;
constexpr std::size_t kBlock = 256 << 10;
constexpr int kLevel = 1;  ///< the fastest one that also packs digits and the like, which hold no repetitions

void wipe(std::string& bytes) { OPENSSL_cleanse(bytes.data(), bytes.size()); }

Bytef* in_of(std::string_view bytes) { return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data())); }
Bytef* out_of(std::string& block, std::size_t at) { return reinterpret_cast<Bytef*>(block.data() + at); }

}  // namespace

struct Spool::Compression {
  Compression() : stream(ZSTD_createCCtx()) {
    if (stream == nullptr || ZSTD_isError(ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, kLevel)) != 0)
      throw sdk::Failure(DRIFTD_BUDGET, "no memory is left for a state");
    XXH3_128bits_reset(&hash);
  }
  ~Compression() { ZSTD_freeCCtx(stream); }
  Compression(const Compression&) = delete;
  Compression& operator=(const Compression&) = delete;
  ZSTD_CCtx* stream;
  std::size_t used = kBlock;  // of the last block
  XXH3_state_t hash;
};

Spool::Spool() : compression_(std::make_unique<Compression>()) {}
Spool::Spool(Spool&&) noexcept = default;
Spool& Spool::operator=(Spool&& other) noexcept {
  for (auto& block : blocks_) wipe(block);
  compression_ = std::move(other.compression_);
  blocks_ = std::move(other.blocks_);
  size_ = other.size_;
  stored_ = other.stored_;
  hash_ = std::move(other.hash_);
  return *this;
}
Spool::~Spool() {
  for (auto& block : blocks_) wipe(block);
}

void Spool::pump(std::string_view bytes, bool end) {
  ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
  for (std::size_t left = 1; end ? left > 0 : in.pos < in.size;) {
    if (compression_->used == kBlock) {
      if (blocks_.size() * kBlock >= kMaxStored) {
        throw sdk::Failure(DRIFTD_BUDGET, "the state is more than 192 MiB also when compressed");
      }
      blocks_.emplace_back(kBlock, '\0');
      compression_->used = 0;
    }
    ZSTD_outBuffer out{blocks_.back().data(), kBlock, compression_->used};
    left = ZSTD_compressStream2(compression_->stream, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
    if (ZSTD_isError(left) != 0) throw sdk::Failure(DRIFTD_BUDGET, "no memory is left for a state");
    compression_->used = out.pos;
  }
}

void Spool::write(std::string_view bytes) {
  size_ += bytes.size();
  if (size_ > kMostText)
    throw sdk::Failure(DRIFTD_BUDGET, "the state is larger than 512 MiB; at most that much is read");
  XXH3_128bits_update(&compression_->hash, bytes.data(), bytes.size());
  pump(bytes, false);
}

void Spool::finish() {
  pump({}, true);
  blocks_.back().resize(compression_->used);
  stored_ = (blocks_.size() - 1) * kBlock + compression_->used;
  XXH128_canonical_t sum;
  XXH128_canonicalFromHash(&sum, XXH3_128bits_digest(&compression_->hash));
  for (const unsigned char byte : sum.digest) {
    hash_ += "0123456789abcdef"[byte >> 4];
    hash_ += "0123456789abcdef"[byte & 15];
  }
  compression_.reset();
}

std::string Spool::text() const {
  std::string out(static_cast<std::size_t>(size_), '\0');
  out.resize(Reader(*this).read(out.data(), out.size()));
  return out;
}

struct Spool::Reader::State {
  State() : stream(ZSTD_createDCtx()) {
    if (stream == nullptr) throw sdk::Failure(DRIFTD_BUDGET, "no memory is left for a state");
  }
  ~State() { ZSTD_freeDCtx(stream); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ZSTD_DCtx* stream;
  std::size_t next_block = 0;
  ZSTD_inBuffer in{nullptr, 0, 0};
};

Spool::Reader::Reader(const Spool& spool) : spool_(&spool), state_(std::make_unique<State>()) {}
Spool::Reader::~Reader() = default;
Spool::Reader::Reader(Reader&&) noexcept = default;

std::size_t Spool::Reader::read(char* to, std::size_t size) {
  ZSTD_outBuffer out{to, size, 0};
  ZSTD_inBuffer& in = state_->in;
  while (out.pos < out.size) {
    if (in.pos == in.size && state_->next_block < spool_->blocks_.size()) {
      const std::string& block = spool_->blocks_[state_->next_block++];
      in = {block.data(), block.size(), 0};
    }
    const std::size_t before = out.pos + in.pos;
    if (ZSTD_isError(ZSTD_decompressStream(state_->stream, &out, &in)) != 0)
      throw sdk::Failure(DRIFTD_INTERNAL, "a state's copy in memory is damaged");
    if (out.pos + in.pos == before) break;  // the end
  }
  return out.pos;
}

struct Gunzip::State {
  State() { inflateInit2(&stream, 15 + 16); }  // 16: a gzip header, its checksum is verified
  ~State() {
    inflateEnd(&stream);
    wipe(window);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  z_stream stream{};
  bool ended = false;
  std::string window = std::string(kBlock, '\0');
};

Gunzip::Gunzip(Spool& to) : to_(to), state_(std::make_unique<State>()) {}
Gunzip::~Gunzip() = default;

void Gunzip::write(std::string_view bytes) {
  z_stream& z = state_->stream;
  z.next_in = in_of(bytes);
  z.avail_in = static_cast<uInt>(bytes.size());
  while (!state_->ended && z.avail_in > 0) {
    z.next_out = out_of(state_->window, 0);
    z.avail_out = static_cast<uInt>(kBlock);
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END)
      throw sdk::Failure(DRIFTD_CORRUPT, "the state is no gzip, or a damaged one");
    to_.write(std::string_view(state_->window).substr(0, kBlock - z.avail_out));
    state_->ended = status == Z_STREAM_END;
  }
  // inflate keeps what did not fit into the window and needs no new input until that is read.
  while (!state_->ended && z.avail_out == 0) {
    z.next_out = out_of(state_->window, 0);
    z.avail_out = static_cast<uInt>(kBlock);
    const int status = inflate(&z, Z_NO_FLUSH);
    to_.write(std::string_view(state_->window).substr(0, kBlock - z.avail_out));
    state_->ended = status == Z_STREAM_END;
    if (status == Z_BUF_ERROR) break;
  }
}

void Gunzip::finish() {
  if (!state_->ended) throw sdk::Failure(DRIFTD_CORRUPT, "the gzipped state is cut off");
}

std::string beginning_of(std::string_view bytes) {
  constexpr std::size_t kMost = 64u << 10;  // of deflated bytes, of which each is at most a thousand
  if (bytes.empty() || bytes[0] != '\x1f') return std::string(bytes);
  try {
    Spool spool;
    Gunzip(spool).write(bytes.substr(0, kMost));
    spool.finish();
    return spool.text();
  } catch (const std::exception&) {  // damaged: a fetch says so
    return {};
  }
}

}  // namespace driftd::terraform
