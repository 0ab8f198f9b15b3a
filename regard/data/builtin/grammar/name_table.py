"""People and places, and the prepositions between things.

People: given names of women and men, and family names, the same in all three languages. Places: `English | German |
French` with the French preposition of being there and of going there. Prepositions: `English | German case | French`.
"""

WOMEN = "Anna Clara Emma Julia Laura Lea Maria Nina Nora Paula Sarah Sophie Alice Claire Jeanne Camille Eva"
MEN = "Paul Martin David Daniel Leo Simon Tom Peter Felix Oscar Robert Victor Anton Julian Omar Ben"
FAMILIES = "Keller Weber Schneider Meyer Bernard Dubois Moreau Lambert Smith Taylor Walker Cooper Rossi Novak Diallo"

PLACES = """
Berlin | Berlin | à Berlin
Paris | Paris | à Paris
London | London | à Londres
Rome | Rom | à Rome
Vienna | Wien | à Vienne
Munich | München | à Munich
Brussels | Brüssel | à Bruxelles
Lisbon | Lissabon | à Lisbonne
Geneva | Genf | à Genève
Cologne | Köln | à Cologne
Prague | Prag | à Prague
Warsaw | Warschau | à Varsovie
Athens | Athen | à Athènes
Venice | Venedig | à Venise
Copenhagen | Kopenhagen | à Copenhague
New:1 York:2 | New:1 York:2 | à New:1 York:2
Germany | Deutschland | en Allemagne
France | Frankreich | en France
Italy | Italien | en Italie
Spain | Spanien | en Espagne
Austria | Österreich | en Autriche
Greece | Griechenland | en Grèce
Canada | Kanada | au Canada
Japan | Japan | au Japon
Brazil | Brasilien | au Brésil
South:1 Africa:2 | Südafrika | en Afrique:2 du:1 Sud:1
"""

PREPOSITIONS = """
under | unter dat | sous
behind | hinter dat | derrière
in front of | vor dat | devant
next:1 to:2 | neben dat | à:1 côté:1 de:2
with | mit dat | avec
without | ohne acc | sans
to | zu dat | à
above | über dat | au-dessus de
below | unter dat | au-dessous de
to:1 the:1 left:1 of:2 | links:1 von:2 dat | à:1 gauche:1 de:2
to:1 the:1 right:1 of:2 | rechts:1 von:2 dat | à:1 droite:1 de:2
"""
