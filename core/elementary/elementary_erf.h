#pragma once
#include "core/elementary/elementary_double.h"
#include "core/elementary/elementary_single.h"

/// The error function; see core/elementary/elementary.h for errors and special values. Free of branches.
namespace lockstep::elementary {

/// With the sign of x, y + y p(y^2) for y = |x| below 1.0625 (1.1875 in double precision), else 1 - e^-q(y - 1.875),
/// where the difference is exact.
LOCKSTEP_PORTABLE float erf(float x) {
  const uint32_t sign = portable::bits<uint32_t>(x) & 0x80000000u;
  const float y = portable::bits<float>(portable::bits<uint32_t>(x) ^ sign);
  const float p =
      detail::polynomial(y * y, 0x1.06eba8p-3f, -0x1.812746p-2f, 0x1.ce2f0ep-4f, -0x1.b82af2p-6f, 0x1.56421cp-8f,
                         -0x1.beacb2p-11f, 0x1.ec370ep-14f, -0x1.ad19p-17f, 0x1.bafbccp-21f);
  const float small = portable::fma(y, p, y);
  const float u = (y > 4.0f ? 4.0f : y) - 1.875f;
  const float q = detail::polynomial(u, 0x1.34eebep+2f, 0x1.0c0894p+2f, 0x1.d59ec4p-1f, 0x1.2cfb12p-6f, -0x1.0a33acp-8f,
                                     0x1.b8efc6p-11f, -0x1.4292b4p-13f, 0x1.716016p-16f, -0x1.b5f8c4p-20f,
                                     -0x1.1d434cp-23f, 0x1.19459ep-25f);
  const float large = 1.0f - exp(-q);
  return portable::bits<float>(portable::bits<uint32_t>(y < 1.0625f ? small : large) | sign);
}

LOCKSTEP_PORTABLE double erf(double x) {
  const uint64_t sign = portable::bits<uint64_t>(x) & 0x8000000000000000u;
  const double y = portable::bits<double>(portable::bits<uint64_t>(x) ^ sign);
  const double p =
      detail::polynomial(y * y, 0x1.06eba8214db69p-3, -0x1.812746b0379e7p-2, 0x1.ce2f21a042be2p-4,
                         -0x1.b82ce31288b4fp-6, 0x1.565bcd0e6a4dep-8, -0x1.c02db4003f43ap-11, 0x1.f9a326f97d591p-14,
                         -0x1.f4d25c377de1ap-17, 0x1.b9e6c956a696bp-20, -0x1.5f7426ea83bfcp-23, 0x1.fcc4c1f99a72cp-27,
                         -0x1.51d14fe029fb8p-30, 0x1.9e2222a700857p-34, -0x1.d5a1e53e9071ap-38, 0x1.e4d55970d2b0dp-42,
                         -0x1.a368bfeb13a82p-46, 0x1.c391aeafd2a7p-51);
  const double small = portable::fma(y, p, y);
  const double u = (y > 6.0 ? 6.0 : y) - 1.875;
  const double q =
      detail::polynomial(u, 0x1.34eebe36bc0d5p+2, 0x1.0c08949d7a9e2p+2, 0x1.d59ec1fb5e4fep-1, 0x1.2cfb0a3111adfp-6,
                         -0x1.0a2f76ec3d57p-8, 0x1.b8dd34790dbd4p-11, -0x1.43761ae4a3f6bp-13, 0x1.79762b3eae5ebp-16,
                         -0x1.a85efebb012bbp-20, -0x1.ff5f2afad2126p-22, 0x1.205df50ab8524p-22, -0x1.604abd40d67dep-24,
                         0x1.3bebf533458ddp-26, -0x1.8a473f7b41ddfp-29, 0x1.003a27332ff2bp-33, 0x1.0ad06edab2c83p-33,
                         -0x1.fcf91b5c725a1p-35, 0x1.2b2c8d5c2ee2fp-36, -0x1.0076091e091b8p-38, 0x1.171e729160ab6p-41,
                         0x1.1187ca3cea73ep-46, -0x1.4e39f37056a8fp-45, 0x1.0af0da2e76364p-46, -0x1.24ad5ec55ebc8p-48,
                         0x1.f51a776dc0b5p-51, -0x1.5816b619d2107p-53, 0x1.79958843b8acep-56, -0x1.445621014e16bp-59,
                         0x1.a4616600b723cp-63, -0x1.8258fa0caea2ep-67, 0x1.c0715d1e3cf2ap-72, -0x1.ede0e7855e22p-78);
  const double large = 1.0 - exp(-q);
  return portable::bits<double>(portable::bits<uint64_t>(y < 1.1875 ? small : large) | sign);
}

}  // namespace lockstep::elementary
