/** Runes in every component: state is explicit. */
export default { compilerOptions: { runes: true } };
