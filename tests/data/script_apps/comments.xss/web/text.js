export function shorten(text, most = 200) {
  const plain = text.trim();
  return plain.length > most ? plain.slice(0, most) + '…' : plain;
}
